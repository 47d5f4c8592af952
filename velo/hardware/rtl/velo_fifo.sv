// A queue in distributed memory. What is written can be read in the next cycle; a power of two of entries.
module velo_fifo #(
    parameter int BITS = 65,
    parameter int DEPTH = 32
) (
    input logic clk,
    input logic rst,
    input logic in_valid,
    output logic in_ready,
    input logic [BITS-1:0] in_data,
    output logic out_valid,
    input logic out_ready,
    output logic [BITS-1:0] out_data
);
  localparam int INDEX_BITS = $clog2(DEPTH);

  logic [BITS-1:0] memory[DEPTH];
  // One bit more than an index: full and empty differ.
  logic [INDEX_BITS:0] head, tail;

  assign in_ready = tail - head != (INDEX_BITS + 1)'(DEPTH);
  assign out_valid = tail != head;
  assign out_data = memory[head[INDEX_BITS-1:0]];

  always_ff @(posedge clk) begin
    if (in_valid && in_ready) begin
      memory[tail[INDEX_BITS-1:0]] <= in_data;
      tail <= tail + 1'b1;
    end
    if (out_valid && out_ready) head <= head + 1'b1;
    if (rst) begin
      head <= '0;
      tail <= '0;
    end
  end
endmodule
