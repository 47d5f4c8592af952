// What the host sets and reads: the mailboxes of the threads, the number of the node, counters.
//
// Each thread has a table entry (page of its ring, size, enable), a head that its software moves, and a tail that the
// completer moves. They live in memories of the FPGA and not in flip-flops, so the number of threads costs nothing but them.
// Windows for heads and tails are apart from the table, so that a driver can map a thread's head to the thread.
module velo_register_file #(
    parameter int N = 28,
    parameter int T = 20
) (
    input logic clk,
    input logic rst,
    // A request of the host; what was read comes two cycles later.
    input logic reg_valid,
    input logic reg_write,
    input logic [T-velo_pkg::PAGE_BITS+1:0] reg_address,
    input logic [velo_pkg::TABLE_BITS-1:0] reg_data,
    output logic [31:0] reg_read,
    // Number of this node.
    output logic [N-T-1:0] node,
    // The mailbox of a thread, in the cycle after it was asked for.
    input logic [T-velo_pkg::PAGE_BITS-1:0] lookup_thread,
    output logic lookup_enabled,
    output logic [velo_pkg::RING_MASK_BITS-1:0] lookup_mask,
    output logic [velo_pkg::HOST_PAGE_BITS-1:0] lookup_page,
    output logic [velo_pkg::POINTER_BITS-1:0] lookup_head,
    output logic [velo_pkg::POINTER_BITS-1:0] lookup_tail,
    input logic tail_write,
    input logic [T-velo_pkg::PAGE_BITS-1:0] tail_thread,
    input logic [velo_pkg::POINTER_BITS-1:0] tail_value,
    // What is counted, for one cycle each.
    input logic sent,
    input logic received,
    input logic bad_store,
    input logic fault_node,
    input logic fault_closed,
    input logic fault_data,
    input logic link_error,
    input logic link_repeat
);
  localparam int THREAD_BITS = T - velo_pkg::PAGE_BITS;
  localparam int THREADS = 1 << THREAD_BITS;

  wire [1:0] window = reg_address[THREAD_BITS+:2];
  wire [THREAD_BITS-1:0] index = reg_address[THREAD_BITS-1:0];
  wire write = reg_valid && reg_write;

  // ---- mailboxes

  logic [velo_pkg::TABLE_BITS-1:0] table_[THREADS];
  logic [velo_pkg::POINTER_BITS-1:0] heads[THREADS];
  logic [velo_pkg::POINTER_BITS-1:0] tails[THREADS];
  initial begin
    for (int i = 0; i < THREADS; i = i + 1) begin
      table_[i] = '0;
      heads[i]  = '0;
      tails[i]  = '0;
    end
  end

  logic [velo_pkg::TABLE_BITS-1:0] entry;
  logic [velo_pkg::POINTER_BITS-1:0] tail_read;
  always_ff @(posedge clk) begin
    if (write && window == velo_pkg::WINDOW_TABLE) table_[index] <= reg_data;
    if (write && window == velo_pkg::WINDOW_HEAD) heads[index] <= reg_data[velo_pkg::POINTER_BITS-1:0];
    if (tail_write) tails[tail_thread] <= tail_value;
    entry <= table_[lookup_thread];
    lookup_head <= heads[lookup_thread];
    lookup_tail <= tails[lookup_thread];
    tail_read <= tails[index];
  end
  assign lookup_page = entry[0+:velo_pkg::HOST_PAGE_BITS];
  assign lookup_mask = entry[velo_pkg::TABLE_MASK_SHIFT+:velo_pkg::RING_MASK_BITS];
  assign lookup_enabled = entry[velo_pkg::TABLE_ENABLE_SHIFT];

  // ---- counters

  logic [31:0] count_sent, count_received;
  logic [15:0] count_bad_stores, count_node, count_closed, count_data, count_errors, count_repeats;
  always_ff @(posedge clk) begin
    if (sent) count_sent <= count_sent + 1'b1;
    if (received) count_received <= count_received + 1'b1;
    if (bad_store) count_bad_stores <= count_bad_stores + 1'b1;
    if (fault_node) count_node <= count_node + 1'b1;
    if (fault_closed) count_closed <= count_closed + 1'b1;
    if (fault_data) count_data <= count_data + 1'b1;
    if (link_error) count_errors <= count_errors + 1'b1;
    if (link_repeat) count_repeats <= count_repeats + 1'b1;
    if (rst) begin
      count_sent <= '0;
      count_received <= '0;
      count_bad_stores <= '0;
      count_node <= '0;
      count_closed <= '0;
      count_data <= '0;
      count_errors <= '0;
      count_repeats <= '0;
    end
  end

  always_ff @(posedge clk) begin
    if (write && window == velo_pkg::WINDOW_CONTROL && index[3:0] == velo_pkg::REGISTER_NODE[3:0]) begin
      node <= reg_data[N-T-1:0];
    end
    if (rst) node <= '0;
  end

  // ---- reading

  logic is_tail;
  logic [3:0] selected;
  always_ff @(posedge clk) begin
    is_tail <= window == velo_pkg::WINDOW_TAIL;
    selected <= index[3:0];
    case (selected)
      velo_pkg::REGISTER_NODE[3:0]: reg_read <= 32'(node);
      velo_pkg::REGISTER_SENT[3:0]: reg_read <= count_sent;
      velo_pkg::REGISTER_RECEIVED[3:0]: reg_read <= count_received;
      velo_pkg::REGISTER_BAD_STORES[3:0]: reg_read <= {16'd0, count_bad_stores};
      velo_pkg::REGISTER_FAULT_NODE[3:0]: reg_read <= {16'd0, count_node};
      velo_pkg::REGISTER_FAULT_CLOSED[3:0]: reg_read <= {16'd0, count_closed};
      velo_pkg::REGISTER_FAULT_DATA[3:0]: reg_read <= {16'd0, count_data};
      velo_pkg::REGISTER_LINK_ERRORS[3:0]: reg_read <= {16'd0, count_errors};
      velo_pkg::REGISTER_LINK_REPEATS[3:0]: reg_read <= {16'd0, count_repeats};
      default: reg_read <= 32'd0;
    endcase
    if (is_tail) reg_read <= 32'(tail_read);
  end
endmodule
