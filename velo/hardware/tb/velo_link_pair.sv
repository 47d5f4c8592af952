// Two ends of a link, a and b, whose wires can be upset: a bit of `flip_ab` turns that wire from a to b in this cycle, the
// highest the mark of a frame's beginning. What is on these wires before that is shown, too.
module velo_link_pair #(
    parameter int LINK = 16
) (
    input logic clk,
    input logic rst,
    input logic [LINK:0] flip_ab,
    input logic [LINK:0] flip_ba,
    output logic [LINK:0] wires_ab,
    output logic [LINK:0] wires_ba,
    input logic a_in_valid,
    output logic a_in_ready,
    input logic [63:0] a_in_data,
    input logic a_in_last,
    output logic a_out_valid,
    input logic a_out_ready,
    output logic [63:0] a_out_data,
    output logic a_out_last,
    output logic a_error,
    output logic a_again,
    input logic b_in_valid,
    output logic b_in_ready,
    input logic [63:0] b_in_data,
    input logic b_in_last,
    output logic b_out_valid,
    input logic b_out_ready,
    output logic [63:0] b_out_data,
    output logic b_out_last,
    output logic b_error,
    output logic b_again
);
  logic a_start, b_start;
  logic [LINK-1:0] a_data, b_data;
  assign wires_ab = {a_start, a_data};
  assign wires_ba = {b_start, b_data};

  velo_link #(
      .LINK(LINK)
  ) a (
      .clk,
      .rst,
      .in_valid(a_in_valid),
      .in_ready(a_in_ready),
      .in_data(a_in_data),
      .in_last(a_in_last),
      .out_valid(a_out_valid),
      .out_ready(a_out_ready),
      .out_data(a_out_data),
      .out_last(a_out_last),
      .tx_start(a_start),
      .tx_data(a_data),
      .rx_start(b_start ^ flip_ba[LINK]),
      .rx_data(b_data ^ flip_ba[LINK-1:0]),
      .error(a_error),
      .again(a_again)
  );

  velo_link #(
      .LINK(LINK)
  ) b (
      .clk,
      .rst,
      .in_valid(b_in_valid),
      .in_ready(b_in_ready),
      .in_data(b_in_data),
      .in_last(b_in_last),
      .out_valid(b_out_valid),
      .out_ready(b_out_ready),
      .out_data(b_out_data),
      .out_last(b_out_last),
      .tx_start(b_start),
      .tx_data(b_data),
      .rx_start(a_start ^ flip_ab[LINK]),
      .rx_data(a_data ^ flip_ab[LINK-1:0]),
      .error(b_error),
      .again(b_again)
  );
endmodule
