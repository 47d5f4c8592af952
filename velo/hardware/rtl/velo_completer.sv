// The receiving side: a packet goes into the next slot of its thread's mailbox, in the memory of the host.
//
// The data go where they stand in the message, and the header goes last, to the beginning of the slot: a header is never 0,
// so whoever polls it sees a message when all of it is there. A full mailbox stops the packet, and with it everything behind
// it, until the host gives a slot back. What cannot be delivered is dropped and counted.
//
// Word by word, without a buffer for a message. A header asks the register file for its mailbox when it comes, is judged in the
// next cycle, and in the one after that has a slot or is dropped; its data leave behind it, each two cycles after it came.
// One word in each cycle, as the header takes in the writes the place that it had in the packet.
module velo_completer #(
    parameter int N = 28,
    parameter int T = 20
) (
    input logic clk,
    input logic rst,
    // Number of this node.
    input logic [N-T-1:0] node,
    // Packets from the network.
    input logic in_valid,
    output logic in_ready,
    input logic [63:0] in_data,
    input logic in_last,
    // The mailbox of a thread, in the cycle after it was asked for.
    output logic [T-velo_pkg::PAGE_BITS-1:0] lookup_thread,
    input logic lookup_enabled,
    input logic [velo_pkg::RING_MASK_BITS-1:0] lookup_mask,
    input logic [velo_pkg::HOST_PAGE_BITS-1:0] lookup_page,
    input logic [velo_pkg::POINTER_BITS-1:0] lookup_head,
    input logic [velo_pkg::POINTER_BITS-1:0] lookup_tail,
    // The tail of this thread moves.
    output logic tail_write,
    output logic [T-velo_pkg::PAGE_BITS-1:0] tail_thread,
    output logic [velo_pkg::POINTER_BITS-1:0] tail_value,
    // Writes to the memory of the host.
    output logic out_valid,
    input logic out_ready,
    output logic [velo_pkg::HOST_BITS-1:0] out_address,
    output logic [63:0] out_data,
    // For one cycle each: a packet got a slot, or was dropped and why.
    output logic received,
    output logic fault_node,
    output logic fault_closed,
    output logic fault_data
);
  localparam int THREAD_BITS = T - velo_pkg::PAGE_BITS;
  localparam int TARGET_NODE_BITS = velo_pkg::ENDPOINT_BITS - THREAD_BITS;
  localparam int SLOT_ADDRESS_BITS = velo_pkg::HOST_BITS - velo_pkg::SLOT_BITS;
  localparam int THREAD_SHIFT = velo_pkg::TARGET_SHIFT;
  localparam int NODE_SHIFT = THREAD_SHIFT + THREAD_BITS;

  // ---- the word that came last, and the word before it, which is passed on

  logic valid, is_header, last;
  logic [63:0] word;
  logic valid2, is_header2, last2;
  logic [63:0] word2;
  // The next word from the network is a header.
  logic at_header;

  // ---- judgement of a header, registered

  // All bits above the thread: a header can name nodes that the map does not have.
  wire [TARGET_NODE_BITS-1:0] target = word[NODE_SHIFT+:TARGET_NODE_BITS];
  wire [5:0] offset = word[velo_pkg::LINE_BITS-1:0];
  wire [5:0] length = word[velo_pkg::LENGTH_SHIFT+:velo_pkg::LINE_BITS];
  wire [5:0] data = word[velo_pkg::DATA_SHIFT+:velo_pkg::LINE_BITS];
  wire malformed = word[velo_pkg::FIXED_SHIFT+:2] != velo_pkg::FIXED || {1'b0, offset} + {1'b0, data} > {1'b0, length}
    || last;
  wire elsewhere = target != TARGET_NODE_BITS'(node);

  // A ring has a power of two of slots, at least one page: what is in it reaches that number when it is full. The tail of
  // a thread that got a slot while it was asked for is one behind.
  logic behind;
  wire [velo_pkg::POINTER_BITS-1:0] filled = lookup_tail - lookup_head + velo_pkg::POINTER_BITS'(behind);
  wire [velo_pkg::POINTER_BITS-1:0] ring = {1'b0, lookup_mask, {velo_pkg::PAGE_SLOT_BITS{1'b1}}};

  logic elsewhere2, malformed2, closed2, full2;
  wire header2 = valid2 && is_header2;
  wire dropped = elsewhere2 || closed2 || malformed2;
  assign fault_node = header2 && elsewhere2;
  assign fault_closed = header2 && !elsewhere2 && closed2;
  assign fault_data = header2 && !elsewhere2 && !closed2 && malformed2;

  // ---- the packet that has a slot

  logic [63:0] header;
  logic [SLOT_ADDRESS_BITS-1:0] slot;
  // Where in the slot the next data word goes.
  logic [3:0] place;
  // The header is to be written, as all data are.
  logic commit;
  // The rest of the packet goes nowhere.
  logic discard;

  // ---- flow

  // The header before must have been written, or just be written.
  assign received = header2 && !dropped && !full2 && (out_ready || !commit);
  wire passes = is_header2 ? dropped || received : discard || out_ready;
  wire moves = !valid2 || passes;
  assign in_ready = !valid || moves;
  wire take = in_valid && in_ready;

  // A header asks when it comes. Then it asks again, for a tail that has moved, and as long as it waits, for a new head.
  wire waits = header2 && !passes;
  assign lookup_thread = waits ? word2[THREAD_SHIFT+:THREAD_BITS]
    : at_header ? in_data[THREAD_SHIFT+:THREAD_BITS] : word[THREAD_SHIFT+:THREAD_BITS];

  assign tail_write = received;
  assign tail_thread = word2[THREAD_SHIFT+:THREAD_BITS];
  assign tail_value = lookup_tail + 1'b1;

  // ---- writes: data of a packet that has a slot, then its header

  wire is_data = valid2 && !is_header2 && !discard;
  assign out_valid = commit || is_data;
  assign out_data = commit ? header : word2;
  assign out_address = {slot, commit ? 4'd0 : place, 3'd0};

  always_ff @(posedge clk) begin
    if (take) begin
      word <= in_data;
      last <= in_last;
      is_header <= at_header;
      at_header <= in_last;
    end
    if (in_ready) valid <= in_valid;
    if (moves) begin
      valid2 <= valid;
      word2 <= word;
      last2 <= last;
      is_header2 <= is_header;
      elsewhere2 <= elsewhere;
      malformed2 <= malformed;
    end
    behind <= received && lookup_thread == tail_thread;
    closed2 <= !lookup_enabled;
    full2 <= |(filled & ~ring);

    if (header2) discard <= dropped;
    if (received) begin
      header <= word2;
      // The ring begins at a multiple of its size: nothing is added.
      slot <= {
        lookup_page[velo_pkg::HOST_PAGE_BITS-1:velo_pkg::RING_MASK_BITS],
        lookup_page[velo_pkg::RING_MASK_BITS-1:0]
          | (lookup_tail[velo_pkg::PAGE_SLOT_BITS+:velo_pkg::RING_MASK_BITS] & lookup_mask),
        lookup_tail[velo_pkg::PAGE_SLOT_BITS-1:0]
      };
      // The slot begins with the header.
      place <= {1'b0, word2[5:3]} + 4'd1;
    end else if (is_data && out_ready) begin
      place <= place + 4'd1;
    end
    if (out_ready) commit <= is_data && last2;

    if (rst) begin
      valid <= 1'b0;
      valid2 <= 1'b0;
      at_header <= 1'b1;
      commit <= 1'b0;
    end
  end

`ifdef FORMAL
  `include "velo_completer.svh"
`endif
endmodule
