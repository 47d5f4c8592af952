// The constants of the VELO message engine. Generated from crate `evb-velo` by its test `hardware`: change them there.
/* verilator lint_off UNUSEDPARAM */
package velo_pkg;

  // An address: bits of a page, and of length and offset in it (modules `address` and `lanes`).
  localparam int PAGE_BITS = 12;
  localparam int LINE_BITS = 6;
  localparam int LINE_BYTES = 64;
  localparam int WORD_BITS = 64;

  // The header of a packet (module `packet`). The offset begins at bit 0.
  localparam int LENGTH_SHIFT = 6;
  localparam int DATA_SHIFT = 12;
  localparam int TARGET_SHIFT = 18;
  localparam int SOURCE_SHIFT = 40;
  localparam int ENDPOINT_BITS = 22;
  localparam int FIXED_SHIFT = 62;

  // The command of a posted write (module `bus`): a physical address, and the length of the data less one.
  localparam int COMMAND_ADDRESS_BITS = 58;
  localparam int COMMAND_DATA_SHIFT = 58;

  // Mailboxes (module `mailbox`): a slot is 2^SLOT_BITS bytes, the message begins at byte SLOT_MESSAGE_AT of it.
  localparam int HOST_BITS = 40;
  localparam int HOST_PAGE_BITS = 28;
  localparam int SLOT_BITS = 7;
  localparam int SLOT_MESSAGE_AT = 8;
  localparam int PAGE_SLOT_BITS = 5;
  localparam int RING_MASK_BITS = 7;
  localparam int POINTER_BITS = 13;

  // The mailbox table (module `registers`). The page begins at bit 0.
  localparam int TABLE_MASK_SHIFT = 28;
  localparam int TABLE_ENABLE_SHIFT = 35;
  localparam int TABLE_BITS = 36;

  // Counters (module `registers`): SENT and RECEIVED are long.
  localparam int LONG_COUNTER_BITS = 32;
  localparam int SHORT_COUNTER_BITS = 16;

  // The bits that are the same in all headers.
  localparam logic [1:0] FIXED = 2'b10;

  // Windows of registers, above the index in their address.
  localparam logic [1:0] WINDOW_CONTROL = 2'd0;
  localparam logic [1:0] WINDOW_HEAD = 2'd1;
  localparam logic [1:0] WINDOW_TABLE = 2'd2;
  localparam logic [1:0] WINDOW_TAIL = 2'd3;

  // Indices of the first window.
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
