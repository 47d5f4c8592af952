// Links joined by a crossbar: a packet leaves at the port that has the number of its target node.
module velo_switch #(
    parameter int PORTS = 16,
    parameter int T = 20,
    parameter int LINK = 16
) (
    input logic clk,
    input logic rst,
    // The links: see velo_link.
    output logic [PORTS-1:0] tx_start,
    output logic [PORTS*LINK-1:0] tx_data,
    input logic [PORTS-1:0] rx_start,
    input logic [PORTS*LINK-1:0] rx_data
);
  localparam int PORT_BITS = PORTS > 1 ? $clog2(PORTS) : 1;
  localparam int NODE_SHIFT = velo_pkg::TARGET_SHIFT + T - velo_pkg::PAGE_BITS;

  logic [PORTS-1:0] to_valid, to_ready, to_last, from_valid, from_ready, from_last;
  logic [PORTS*64-1:0] to_data, from_data;
  logic [PORTS*PORT_BITS-1:0] to_port;
  logic [PORTS-1:0] unused_error, unused_again;

  for (genvar p = 0; p < PORTS; p = p + 1) begin : ports
    // A target beyond the last port would hold its input for ever: it goes to port 0, whose node refuses it.
    wire [PORT_BITS-1:0] target = to_data[p*64+NODE_SHIFT+:PORT_BITS];
    assign to_port[p*PORT_BITS+:PORT_BITS] = 32'(target) < PORTS ? target : '0;

    velo_link #(
        .LINK(LINK)
    ) link (
        .clk,
        .rst,
        .in_valid(from_valid[p]),
        .in_ready(from_ready[p]),
        .in_data(from_data[p*64+:64]),
        .in_last(from_last[p]),
        .out_valid(to_valid[p]),
        .out_ready(to_ready[p]),
        .out_data(to_data[p*64+:64]),
        .out_last(to_last[p]),
        .tx_start(tx_start[p]),
        .tx_data(tx_data[p*LINK+:LINK]),
        .rx_start(rx_start[p]),
        .rx_data(rx_data[p*LINK+:LINK]),
        .error(unused_error[p]),
        .again(unused_again[p])
    );
  end

  velo_crossbar #(
      .PORTS(PORTS)
  ) crossbar (
      .clk,
      .rst,
      .in_valid(to_valid),
      .in_ready(to_ready),
      .in_data(to_data),
      .in_last(to_last),
      .in_port(to_port),
      .out_valid(from_valid),
      .out_ready(from_ready),
      .out_data(from_data),
      .out_last(from_last)
  );
endmodule
