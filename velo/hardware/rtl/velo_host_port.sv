// The device's side of the host's bus, with credits both ways.
//
// The host posts words while it has credits, POSTED of them after reset, and gets one back for each word that moves on: so a
// processor that stores faster than the network takes stops by itself, and asks nobody for room. Writes to the memory of the
// host go while there are credits, WRITES after reset, and the host gives one back for each.
module velo_host_port #(
    parameter int POSTED = 32,
    parameter int WRITES = 16
) (
    input logic clk,
    input logic rst,
    // The bus.
    input logic posted_valid,
    input logic [63:0] posted_data,
    input logic posted_last,
    output logic posted_credit,
    output logic write_valid,
    output logic [velo_pkg::HOST_BITS-1:0] write_address,
    output logic [63:0] write_data,
    input logic write_credit,
    // Transactions to the device.
    output logic out_valid,
    input logic out_ready,
    output logic [63:0] out_data,
    output logic out_last,
    // Writes of the device.
    input logic in_valid,
    output logic in_ready,
    input logic [velo_pkg::HOST_BITS-1:0] in_address,
    input logic [63:0] in_data
);
  localparam int CREDIT_BITS = $clog2(WRITES + 1);

  logic has_room;
  velo_fifo #(
      .BITS (65),
      .DEPTH(POSTED)
  ) posted (
      .clk,
      .rst,
      .in_valid(posted_valid),
      .in_ready(has_room),
      .in_data({posted_last, posted_data}),
      .out_valid,
      .out_ready,
      .out_data({out_last, out_data})
  );

  logic [CREDIT_BITS-1:0] credits;

`ifdef VERILATOR
  // The host posts nothing that it has no credit for, and gives back no more than it got.
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (!posted_valid || has_room);
      assert (!write_credit || write_valid || credits != CREDIT_BITS'(WRITES));
    end
  end
`endif

  assign in_ready = credits != '0;
  assign write_valid = in_valid && in_ready;
  assign write_address = in_address;
  assign write_data = in_data;

  always_ff @(posedge clk) begin
    posted_credit <= out_valid && out_ready;
    credits <= credits + CREDIT_BITS'(write_credit) - CREDIT_BITS'(write_valid);
    if (rst) begin
      posted_credit <= 1'b0;
      credits <= CREDIT_BITS'(WRITES);
    end
  end
endmodule
