// Constants of the VELO message engine.
/* verilator lint_off UNUSEDPARAM */
package velo_pkg;
  // Bits of an address within a page, and of length and offset in it.
  localparam int PAGE_BITS = 12;
  localparam int LINE_BITS = 6;
  localparam int LINE_BYTES = 64;

  // Header of a packet.
  localparam int WORD_BITS = 64;
  localparam int LENGTH_SHIFT = 6;
  localparam int DATA_SHIFT = 12;
  localparam int TARGET_SHIFT = 18;
  localparam int ENDPOINT_BITS = 22;
  localparam int SOURCE_SHIFT = 40;
  localparam int FIXED_SHIFT = 62;
  localparam logic [1:0] FIXED = 2'b10;

  // Command of a posted write.
  localparam int COMMAND_DATA_SHIFT = 58;

  // Mailboxes.
  localparam int HOST_BITS = 40;
  localparam int SLOT_BITS = 7;
  localparam int POINTER_BITS = 13;
  localparam int PAGE_SLOT_BITS = 5;
  localparam int RING_MASK_BITS = 7;
  localparam int HOST_PAGE_BITS = 28;
  localparam int TABLE_BITS = 36;
  localparam int TABLE_MASK_SHIFT = 28;
  localparam int TABLE_ENABLE_SHIFT = 35;

  // Registers.
  localparam logic [1:0] WINDOW_CONTROL = 2'd0;
  localparam logic [1:0] WINDOW_HEAD = 2'd1;
  localparam logic [1:0] WINDOW_TABLE = 2'd2;
  localparam logic [1:0] WINDOW_TAIL = 2'd3;
  localparam int REGISTER_NODE = 0;
  localparam int REGISTER_SENT = 1;
  localparam int REGISTER_RECEIVED = 2;
  localparam int REGISTER_BAD_STORES = 3;
  localparam int REGISTER_FAULT_NODE = 4;
  localparam int REGISTER_FAULT_CLOSED = 5;
  localparam int REGISTER_FAULT_DATA = 6;
  localparam int REGISTER_LINK_ERRORS = 7;
  localparam int REGISTER_LINK_REPEATS = 8;
endpackage
/* verilator lint_on UNUSEDPARAM */
