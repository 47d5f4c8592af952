// A node: the functional unit between the bus of a host and one link.
//
//   host port -> requester -> crossbar -> link
//   host port <- completer <- crossbar <- link
//
// A packet for the node itself turns round in the crossbar.
module velo_node #(
    parameter int N = 28,
    parameter int T = 20,
    parameter int LINK = 16,
    parameter int POSTED = 32,
    parameter int WRITES = 16
) (
    input logic clk,
    input logic rst,
    // The bus of the host: see velo_host_port.
    input logic posted_valid,
    input logic [63:0] posted_data,
    input logic posted_last,
    output logic posted_credit,
    output logic write_valid,
    output logic [velo_pkg::HOST_BITS-1:0] write_address,
    output logic [63:0] write_data,
    input logic write_credit,
    // Registers: see velo_register_file.
    input logic reg_valid,
    input logic reg_write,
    input logic [T-velo_pkg::PAGE_BITS+1:0] reg_address,
    input logic [velo_pkg::TABLE_BITS-1:0] reg_data,
    output logic [31:0] reg_read,
    // The link: see velo_link.
    output logic tx_start,
    output logic [LINK-1:0] tx_data,
    input logic rx_start,
    input logic [LINK-1:0] rx_data
);
  localparam int THREAD_BITS = T - velo_pkg::PAGE_BITS;
  localparam int NODE_BITS = N - T;
  localparam int NODE_SHIFT = velo_pkg::TARGET_SHIFT + THREAD_BITS;

  logic [NODE_BITS-1:0] node;

  // Host to requester.
  logic store_valid, store_ready, store_last;
  logic [63:0] store_data;
  // Completer to host.
  logic done_valid, done_ready;
  logic [velo_pkg::HOST_BITS-1:0] done_address;
  logic [63:0] done_data;

  velo_host_port #(
      .POSTED(POSTED),
      .WRITES(WRITES)
  ) host_port (
      .clk,
      .rst,
      .posted_valid,
      .posted_data,
      .posted_last,
      .posted_credit,
      .write_valid,
      .write_address,
      .write_data,
      .write_credit,
      .out_valid(store_valid),
      .out_ready(store_ready),
      .out_data(store_data),
      .out_last(store_last),
      .in_valid(done_valid),
      .in_ready(done_ready),
      .in_address(done_address),
      .in_data(done_data)
  );

  // Into and out of the crossbar, each with the local side below and the link above.
  logic [1:0] to_valid, to_ready, to_last, from_valid, from_ready, from_last;
  logic [127:0] to_data, from_data;
  logic sent, bad_store;

  velo_requester #(
      .N(N),
      .T(T)
  ) requester (
      .clk,
      .rst,
      .node,
      .in_valid(store_valid),
      .in_ready(store_ready),
      .in_data(store_data),
      .in_last(store_last),
      .out_valid(to_valid[0]),
      .out_ready(to_ready[0]),
      .out_data(to_data[63:0]),
      .out_last(to_last[0]),
      .sent,
      .bad(bad_store)
  );

  wire is_local = to_data[NODE_SHIFT+:NODE_BITS] == node;

  velo_crossbar #(
      .PORTS(2)
  ) crossbar (
      .clk,
      .rst,
      .in_valid(to_valid),
      .in_ready(to_ready),
      .in_data(to_data),
      .in_last(to_last),
      // All that comes over the link is for this node.
      .in_port({1'b0, !is_local}),
      .out_valid(from_valid),
      .out_ready(from_ready),
      .out_data(from_data),
      .out_last(from_last)
  );

  logic link_error, link_again;

  velo_link #(
      .LINK(LINK)
  ) link (
      .clk,
      .rst,
      .in_valid(from_valid[1]),
      .in_ready(from_ready[1]),
      .in_data(from_data[127:64]),
      .in_last(from_last[1]),
      .out_valid(to_valid[1]),
      .out_ready(to_ready[1]),
      .out_data(to_data[127:64]),
      .out_last(to_last[1]),
      .tx_start,
      .tx_data,
      .rx_start,
      .rx_data,
      .error(link_error),
      .again(link_again)
  );

  logic [THREAD_BITS-1:0] lookup_thread, tail_thread;
  logic lookup_enabled, tail_write;
  logic [velo_pkg::RING_MASK_BITS-1:0] lookup_mask;
  logic [velo_pkg::HOST_PAGE_BITS-1:0] lookup_page;
  logic [velo_pkg::POINTER_BITS-1:0] lookup_head, lookup_tail, tail_value;
  logic received, fault_node, fault_closed, fault_data;

  velo_completer #(
      .N(N),
      .T(T)
  ) completer (
      .clk,
      .rst,
      .node,
      .in_valid(from_valid[0]),
      .in_ready(from_ready[0]),
      .in_data(from_data[63:0]),
      .in_last(from_last[0]),
      .lookup_thread,
      .lookup_enabled,
      .lookup_mask,
      .lookup_page,
      .lookup_head,
      .lookup_tail,
      .tail_write,
      .tail_thread,
      .tail_value,
      .out_valid(done_valid),
      .out_ready(done_ready),
      .out_address(done_address),
      .out_data(done_data),
      .received,
      .fault_node,
      .fault_closed,
      .fault_data
  );

  velo_register_file #(
      .N(N),
      .T(T)
  ) register_file (
      .clk,
      .rst,
      .reg_valid,
      .reg_write,
      .reg_address,
      .reg_data,
      .reg_read,
      .node,
      .lookup_thread,
      .lookup_enabled,
      .lookup_mask,
      .lookup_page,
      .lookup_head,
      .lookup_tail,
      .tail_write,
      .tail_thread,
      .tail_value,
      .sent,
      .received,
      .bad_store,
      .fault_node,
      .fault_closed,
      .fault_data,
      .link_error,
      .link_repeat(link_again)
  );
endmodule
