// Completer and register file together, as in a node.
module velo_completion #(
    parameter int N = 28,
    parameter int T = 20
) (
    input logic clk,
    input logic rst,
    input logic in_valid,
    output logic in_ready,
    input logic [63:0] in_data,
    input logic in_last,
    output logic out_valid,
    input logic out_ready,
    output logic [velo_pkg::HOST_BITS-1:0] out_address,
    output logic [63:0] out_data,
    input logic reg_valid,
    input logic reg_write,
    input logic [T-velo_pkg::PAGE_BITS+1:0] reg_address,
    input logic [velo_pkg::TABLE_BITS-1:0] reg_data,
    output logic [31:0] reg_read
);
  logic [N-T-1:0] node;
  logic [T-velo_pkg::PAGE_BITS-1:0] lookup_thread, tail_thread;
  logic lookup_enabled, tail_write;
  logic [velo_pkg::RING_MASK_BITS-1:0] lookup_mask;
  logic [velo_pkg::HOST_PAGE_BITS-1:0] lookup_page;
  logic [velo_pkg::POINTER_BITS-1:0] lookup_head, lookup_tail, tail_value;
  logic received, fault_node, fault_closed, fault_data;

  velo_completer #(
      .N(N),
      .T(T)
  ) completer (
      .*
  );

  velo_register_file #(
      .N(N),
      .T(T)
  ) register_file (
      .*,
      .sent(1'b0),
      .bad_store(1'b0),
      .link_error(1'b0),
      .link_repeat(1'b0)
  );
endmodule
