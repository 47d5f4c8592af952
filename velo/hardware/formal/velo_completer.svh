// What must hold of velo_completer, whatever comes from the network, whatever the register file says, and whenever the host
// takes a write. Read within the module.
//
// The network is assumed to keep the rule of a stream: a word that waits does not change.

  always_comb assume (rst == $initstate);
  always_ff @(posedge clk) begin
    if (!rst && $past(in_valid && !in_ready && !rst)) assume (in_valid && $stable(in_data) && $stable(in_last));
  end

  // A ring has a power of two of pages, at most 128, and begins at a multiple of its size; what is in it fits into it.
  wire [12:0] slots = {1'b0, lookup_mask, 5'd0} + 13'd32;
  always_comb begin
    assume ((lookup_mask & (lookup_mask + 7'd1)) == 0);
    assume ((lookup_page[6:0] & lookup_mask) == 0);
    assume (filled <= slots);
  end

  // What the register file says of a thread comes in the cycle after; a thread that is asked for again has the same
  // mailbox, but for a head that the host has moved and a tail that has.
  logic [7:0] asked, asked_before;
  logic moved, moved_before, enabled_before, second;
  logic [6:0] mask_before;
  logic [27:0] page_before;
  logic [12:0] tail_before, head_before;
  always_ff @(posedge clk) begin
    asked <= lookup_thread;
    moved <= received && lookup_thread == tail_thread;
    {asked_before, moved_before, second} <= {asked, moved, !rst};
    {enabled_before, mask_before, page_before} <= {lookup_enabled, lookup_mask, lookup_page};
    {tail_before, head_before} <= {lookup_tail, lookup_head};
  end
  always_comb begin
    if (!rst && second && asked == asked_before) begin
      assume (lookup_enabled == enabled_before && lookup_mask == mask_before && lookup_page == page_before);
      assume (lookup_tail == tail_before + 13'(moved_before));
      // A head moves forward.
      assume (lookup_tail - lookup_head <= tail_before - head_before + 13'(moved_before));
    end
  end

  // ---- the packet that got a slot last, and its mailbox at that time

  logic [27:0] its_page;
  logic [6:0] its_mask;
  logic [12:0] its_tail;
  logic [63:0] its_header;
  // Its header is not written.
  logic unwritten;
  always_ff @(posedge clk) begin
    if (received) begin
      its_page <= lookup_page;
      its_mask <= lookup_mask;
      its_tail <= lookup_tail;
      its_header <= word2;
    end
    if (rst) unwritten <= 1'b0;
    else if (received) unwritten <= 1'b1;
    else if (commit && out_ready) unwritten <= 1'b0;
  end
  // Its ring and its slot, by addition.
  wire [39:0] its_ring = {its_page, 12'd0};
  wire [39:0] its_slot = its_ring + {20'd0, its_tail & {1'b0, its_mask, 5'h1f}, 7'd0};
  wire [40:0] its_end = {1'b0, its_ring} + {21'd0, {1'b0, its_mask} + 8'd1, 12'd0};

  // ---- where in a packet the next word from the network is: no packet is longer than a header and the words of a cache
  // line that come from its offset on

  logic [3:0] words_left;
  wire [3:0] words_of_next = 4'd8 - {1'b0, in_data[5:3]};
  always_comb assume (!(in_valid && at_header == 1'b0 && words_left == 4'd1) || in_last);
  always_ff @(posedge clk) begin
    if (take) words_left <= in_last ? 4'd0 : words_left == 4'd0 ? words_of_next : words_left - 4'd1;
    if (rst) words_left <= 4'd0;
  end

  always_ff @(posedge clk) begin
    // A write that waits does not change.
    if (!rst && $past(out_valid && !out_ready && !rst)) assert (out_valid && $stable(out_address) && $stable(out_data));
  end

  always_comb begin
    if (!rst) begin
      // A slot is given only in an enabled mailbox with room, to a packet that is right and for this node.
      if (received) begin
        assert (lookup_enabled && filled < slots && asked == word2[25:18]);
        assert (word2[63:62] == 2'b10 && word2[39:26] == {6'd0, node_then} && !last2);
        assert ({1'b0, word2[5:0]} + {1'b0, word2[17:12]} <= {1'b0, word2[11:6]});
      end
      // The tail moves with it, by one, and for its thread.
      assert (tail_write == received);
      if (received) assert (tail_value == lookup_tail + 13'd1 && tail_thread == word2[25:18]);
      // A packet has one fate, and has it when its header moves on, neither before nor after.
      assert (2'(received) + 2'(fault_node) + 2'(fault_closed) + 2'(fault_data) <= 2'd1);
      if (header2) assert (passes == (received || fault_node || fault_closed || fault_data));
      // A write goes into the slot of its packet, which is in the ring of its mailbox, and is the word that it should be: a
      // header at the beginning, never 0, or data behind it.
      if (out_valid) begin
        assert (unwritten && out_address[39:7] == its_slot[39:7] && its_slot[6:0] == 7'd0);
        assert (its_slot >= its_ring && {1'b0, its_slot} < its_end);
        assert (out_address[2:0] == 3'd0 && out_data == (commit ? its_header : word2));
        assert (commit ? out_address[6:0] == 7'd0 && out_data[63] : out_address[6:3] != 4'd0);
      end
      // The header goes last: no data of this packet follow it, as the next word is another header.
      if (commit) assert (!is_data);
      // The packet before is written, or is just being, when the next has a slot.
      if (received) assert (!unwritten || (commit && out_ready));
      // Only a full mailbox and a host that takes nothing stop the network.
      if (out_ready && !(header2 && !dropped && full2)) assert (in_ready);
      // What the state means: by this the rest follows from one cycle to the next.
      assert (at_header == (words_left == 4'd0) && words_left <= 4'd8);
      if (valid) assert (at_header == last);
      if (valid && valid2) assert (is_header == last2);
      if (valid2 && !valid) assert (at_header == last2);
      if (valid && is_header) assert ({1'b0, words_left} + {2'b0, word[5:3]} <= 5'd8);
      if (valid && is_header && !last) assert (asked == word[25:18]);
      if (header2 && !elsewhere2 && !malformed2) begin
        assert (asked == word2[25:18] && closed2 == !lookup_enabled && !last2);
        assert (full2 || lookup_tail - lookup_head < slots);
        assert (word2[39:26] == {6'd0, node_then});
        assert (word2[63:62] == 2'b10 && {1'b0, word2[5:0]} + {1'b0, word2[17:12]} <= {1'b0, word2[11:6]});
        assert ({1'b0, words_left} + {4'd0, valid} + {2'b0, word2[5:3]} <= 5'd8);
      end
      assert (behind == moved);
      if (commit) assert (unwritten);
      if (header2 && !commit) assert (!unwritten);
      if (valid2 && !is_header2) assert (discard != (unwritten && !commit));
      if (!valid2 && valid && is_header && !commit) assert (!unwritten);
      if (!valid2 && !(valid && is_header) && (valid || !at_header)) assert (discard != (unwritten && !commit));
      if (unwritten && !commit) begin
        assert (valid2 ? !is_header2 : valid ? !is_header : !at_header);
        assert ({1'b0, place} + {1'b0, words_ahead} <= 5'd9 && place >= 4'd1 && place <= 4'd8);
      end
      if (unwritten) begin
        assert (header == its_header && its_header[63] && {slot, 7'd0} == its_slot);
        assert ((its_mask & (its_mask + 7'd1)) == 0 && (its_page[6:0] & its_mask) == 0);
      end
    end
  end

  // The words of the packet with a slot that are still to be written: here, and at most to come.
  wire in_word2 = valid2 && !is_header2;
  wire in_word = valid && !is_header;
  wire [3:0] to_come = (in_word2 && last2) || (in_word && last) ? 4'd0 : words_left;
  wire [3:0] words_ahead = {3'd0, in_word2} + {3'd0, in_word && !(in_word2 && last2)} + to_come;
  // The number of the node when the header was judged.
  logic [7:0] node_then;
  always_ff @(posedge clk) if (moves) node_then <= node;
