// Two ends of a link whose frames are lost at random, or begin where there are none: what must come out at b is what went in
// at a, once each and in order.
//
// Every wire that marks a frame can fail in every cycle. Frames with wrong bits are left to the benches: that no change of
// the bits passes the CRC cannot be proven, as some do.
module link_properties (
    input logic clk,
    input logic rst,
    input logic fail_ab,
    input logic fail_ba,
    input logic in_valid,
    input logic in_last,
    input logic out_ready
);
  logic a_start, b_start, in_ready, out_valid, out_last;
  logic [95:0] a_data, b_data;
  logic [63:0] out_data;
  // Words are numbered; one of them is told to be the last of its packet.
  logic [7:0] taken, given;
  logic [3:0] of_packet;
  (* anyconst *) logic [7:0] probe;
  (* anyconst *) logic probe_last;

  velo_link #(.LINK(96), .HEARTBEAT(8)) a (
      .clk, .rst, .in_valid, .in_ready, .in_data({56'd0, taken}), .in_last,
      .out_valid(), .out_ready(1'b1), .out_data(), .out_last(),
      .tx_start(a_start), .tx_data(a_data), .rx_start(b_start && !fail_ba || fail_ba && !b_start), .rx_data(b_data), .error(), .again()
  );
  velo_link #(.LINK(96), .HEARTBEAT(8)) b (
      .clk, .rst, .in_valid(1'b0), .in_ready(), .in_data(64'd0), .in_last(1'b0),
      .out_valid, .out_ready, .out_data, .out_last,
      .tx_start(b_start), .tx_data(b_data), .rx_start(a_start != fail_ab), .rx_data(a_data), .error(), .again()
  );

  always_comb assume (rst == $initstate);
  always_comb assume (!(in_valid && of_packet == 4'd8) || in_last);
  always_comb assume (!(in_valid && taken == probe) || in_last == probe_last);
  always_ff @(posedge clk) begin
    if (in_valid && in_ready) begin
      taken <= taken + 8'd1;
      of_packet <= in_last ? 4'd0 : of_packet + 4'd1;
    end
    if (out_valid && out_ready) given <= given + 8'd1;
    if (rst) {taken, given, of_packet} <= '0;
  end
  always_comb begin
    if (!rst && out_valid) begin
      assert (out_data == {56'd0, given} && given != taken);
      assert (given != probe || out_last == probe_last);
    end
  end
endmodule
