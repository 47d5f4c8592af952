// One end of a link: words of packets go over a few wires, and come out at the other end once each and in order, whatever
// happens to single frames on the way.
//
// A frame has 96 bits and takes 96 / LINK cycles, the first of which is marked:
//
// | bits | field |
// |---|---|
// | 0 to 63 | the word |
// | 64, 65 | kind: 0 acknowledgement, 1 refusal, 2 word, 3 last word of a packet |
// | 66 to 69 | number of the word; without a word, the number that the next one will have |
// | 70 to 73 | number of the word that is expected from the other end |
// | 74 to 79 | words that have left the buffer for what comes from the other end, modulo 64: its credit |
// | 80 to 95 | CRC-16 (polynomial 0x1021, begun with ones) of bits 0 to 79 |
//
// The sender keeps each word until it is acknowledged. The receiver takes the word that it expects and no other. When one is
// missing it refuses, once, and the sender goes back to that word. Words are checked one by one: so a word can go on before
// its packet is complete, and is right unless it was spoilt in a way that the CRC cannot see.
//
// Both ends send a frame at least every HEARTBEAT cycles: so every loss shows, also that of the last word, of an
// acknowledgement or of a credit. A packet is begun only when the other end has room for a whole one.
module velo_link #(
    parameter int LINK = 16,
    parameter int HEARTBEAT = 64
) (
    input logic clk,
    input logic rst,
    // Words to send.
    input logic in_valid,
    output logic in_ready,
    input logic [63:0] in_data,
    input logic in_last,
    // Words received.
    output logic out_valid,
    input logic out_ready,
    output logic [63:0] out_data,
    output logic out_last,
    // The wires.
    output logic tx_start,
    output logic [LINK-1:0] tx_data,
    input logic rx_start,
    input logic [LINK-1:0] rx_data,
    // For one cycle each: a frame was bad; a word is sent again.
    output logic error,
    output logic again
);
  localparam int FRAME = 96;
  localparam int CYCLES = FRAME / LINK;
  localparam int BODY = 80;
  // Words that the buffer of a receiver holds, and those of the longest packet: a header and a cache line.
  localparam int DEPTH = 32;
  localparam int LONGEST = 9;
  // Cycles for which news wait for a word that can take them along, such as the answer of a node, and words that wait for
  // none. A frame of one cycle is in nobody's way.
  localparam int HOLD = CYCLES == 1 ? 0 : 15;
  localparam int MOST_UNREPORTED = 4;
  // Words without acknowledgement. Fewer than half of the numbers: a number behind differs from one ahead.
  localparam int WINDOW = 7;

  typedef enum logic [1:0] {
    ACK,
    REFUSAL,
    WORD,
    LAST_WORD
  } kind_t;

  // A CRC is linear: each of its bits is the parity of some bits of the body, turned or not by the ones that it is begun
  // with. So all of them are found side by side; bit after bit would be a long way for a signal.
  //
  // The bits of the body whose parity is bit `k`, then what the ones leave of it.
  function automatic logic [BODY:0] parity(input logic [3:0] k);
    logic [15:0] of_bit, of_ones;
    of_bit  = 16'h1021;
    of_ones = 16'hffff;
    for (int i = BODY - 1; i >= 0; i = i - 1) begin
      parity[i] = of_bit[k];
      of_bit = {of_bit[14:0], 1'b0} ^ (of_bit[15] ? 16'h1021 : 16'h0000);
      of_ones = {of_ones[14:0], 1'b0} ^ (of_ones[15] ? 16'h1021 : 16'h0000);
    end
    parity[BODY] = of_ones[k];
  endfunction

  // What came, what goes, and their CRC.
  logic [FRAME-1:0] frame;
  logic [BODY-1:0] body;
  logic [15:0] rx_sum, tx_sum;
  for (genvar k = 0; k < 16; k = k + 1) begin : sums
    localparam logic [BODY:0] PARITY = parity(k);
    assign rx_sum[k] = ^({1'b1, frame[BODY-1:0]} & PARITY);
    assign tx_sum[k] = ^({1'b1, body} & PARITY);
  end

  // ---- what came: the frame that is complete, for one cycle

  logic complete;
  logic [3:0] missing;

  wire [1:0] kind = frame[65:64];
  wire [3:0] number = frame[69:66];
  wire good = complete && frame[95:80] == rx_sum;
  wire has_word = kind == WORD || kind == LAST_WORD;

  always_ff @(posedge clk) begin
    frame <= FRAME'({rx_data, frame} >> LINK);
    complete <= rx_start ? CYCLES == 1 : missing == 4'd1;
    if (rx_start) missing <= 4'(CYCLES - 1);
    else if (missing != 4'd0) missing <= missing - 4'd1;
    if (rst) begin
      complete <= 1'b0;
      missing  <= 4'd0;
    end
  end

  // ---- words that came

  logic [3:0] expected;
  // The word that is expected was refused: it is on its way.
  logic refused;
  logic [5:0] freed;
  logic has_room;

  wire [3:0] ahead = number - expected;
  wire is_ahead = ahead != 4'd0 && !ahead[3];
  wire accept = good && has_word && ahead == 4'd0;
  // A word was lost. A frame without one says so again, when the refusal was lost too.
  wire lost = complete && !good && !refused || good && is_ahead && (!refused || !has_word);

  assign error = complete && !good;

  velo_fifo #(
      .BITS (65),
      .DEPTH(DEPTH)
  ) buffer (
      .clk,
      .rst,
      .in_valid(accept),
      .in_ready(has_room),
      .in_data({kind == LAST_WORD, frame[63:0]}),
      .out_valid,
      .out_ready,
      .out_data({out_last, out_data})
  );

`ifdef VERILATOR
  // The other end sends nothing that there is no room for: it has credits.
  always_ff @(posedge clk) if (!rst && accept) assert (has_room);
`endif

  always_ff @(posedge clk) begin
    if (accept) expected <= expected + 4'd1;
    if (out_valid && out_ready) freed <= freed + 6'd1;
    if (lost) refused <= 1'b1;
    else if (good && ahead == 4'd0) refused <= 1'b0;
    if (rst) begin
      expected <= 4'd0;
      freed <= 6'd0;
      refused <= 1'b0;
    end
  end

  // ---- words to send: from `oldest` on they are kept, from `next` on they are to be sent, `written` comes next

  logic [64:0] kept[16];
  logic [3:0] oldest, next, written;
  logic at_header;
  // Words taken, and words that the other end has passed on, modulo 64.
  logic [5:0] taken, passed;

  wire [5:0] room = 6'(DEPTH) - (taken - passed);
  assign in_ready = written - oldest != 4'(WINDOW) && (!at_header || room >= 6'(LONGEST));
  wire take = in_valid && in_ready;

  // What the other end says of words that it got.
  wire [3:0] acknowledged = frame[73:70];
  wire [3:0] behind = acknowledged - oldest;
  wire [3:0] unsent_from = next - oldest;

  // ---- frames

  logic [FRAME-1:0] wires;
  logic [3:0] left;
  logic [6:0] silence;
  // What the other end does not know: that a word is to come again; that words came or have left the buffer, how many came
  // and for how long nothing else did.
  logic refusal_due, news;
  logic [2:0] unreported;
  logic [3:0] quiet;

  wire free = left == 4'd0;
  wire has_next = next != written;
  wire send_word = free && !refusal_due && has_next;
  wire news_due = news && (quiet == 4'(HOLD) || unreported == 3'(MOST_UNREPORTED));
  wire send_other = free && (refusal_due || !has_next && (news_due || silence == 7'(HEARTBEAT - 1)));
  wire [64:0] next_word = kept[next];
  wire [1:0] next_kind = send_word ? (next_word[64] ? LAST_WORD : WORD) : refusal_due ? REFUSAL : ACK;
  assign body = {freed, expected, next, next_kind, next_word[63:0]};

  assign tx_data = wires[LINK-1:0];

  // The word that was farthest, for counting those that go again.
  logic [3:0] farthest;
  assign again = send_word && next != farthest;

  always_ff @(posedge clk) begin
    if (take) begin
      kept[written] <= {in_last, in_data};
      written <= written + 4'd1;
      taken <= taken + 6'd1;
      at_header <= in_last;
    end

    if (send_word) begin
      next <= next + 4'd1;
      if (next == farthest) farthest <= farthest + 4'd1;
    end
    if (good) begin
      oldest <= acknowledged;
      passed <= frame[79:74];
      if (kind == REFUSAL || behind > unsent_from) next <= acknowledged;
    end

    tx_start <= send_word || send_other;
    if (send_word || send_other) begin
      wires <= {tx_sum, body};
      left <= 4'(CYCLES - 1);
      silence <= 7'd0;
      refusal_due <= 1'b0;
      news <= 1'b0;
    end else begin
      wires <= wires >> LINK;
      if (!free) left <= left - 4'd1;
      if (silence != 7'(HEARTBEAT - 1)) silence <= silence + 7'd1;
    end
    if (lost) refusal_due <= 1'b1;
    if (good && has_word || out_valid && out_ready) begin
      news <= 1'b1;
      quiet <= 4'd0;
    end else if (quiet != 4'(HOLD)) begin
      quiet <= quiet + 4'd1;
    end
    if (send_word || send_other) unreported <= {2'd0, accept};
    else if (accept && unreported != 3'(MOST_UNREPORTED)) unreported <= unreported + 3'd1;

    if (rst) begin
      {oldest, next, written, farthest} <= '0;
      at_header <= 1'b1;
      taken <= 6'd0;
      passed <= 6'd0;
      tx_start <= 1'b0;
      wires <= '0;
      left <= 4'd0;
      silence <= 7'd0;
      refusal_due <= 1'b0;
      news <= 1'b0;
      unreported <= 3'd0;
      quiet <= 4'd0;
    end
  end
endmodule
