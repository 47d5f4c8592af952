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

  // ---- the packet that got a slot last, and its mailbox at that time

  logic [27:0] its_page;
  logic [6:0] its_mask;
  logic [12:0] its_tail;
  logic [63:0] its_header;
  // Its header has not gone to the output.
  logic unwritten;
  always_ff @(posedge clk) begin
    if (received) begin
      its_page <= lookup_page;
      its_mask <= lookup_mask;
      its_tail <= lookup_tail;
      its_header <= word;
    end
    if (rst) unwritten <= 1'b0;
    else if (received) unwritten <= 1'b1;
    else if (commit && out_free) unwritten <= 1'b0;
  end
  // Its ring and its slot, by addition.
  wire [39:0] its_ring = {its_page, 12'd0};
  wire [39:0] its_slot = its_ring + {20'd0, its_tail & {1'b0, its_mask, 5'h1f}, 7'd0};
  wire [40:0] its_end = {1'b0, its_ring} + {21'd0, {1'b0, its_mask} + 8'd1, 12'd0};

  // ---- the write at the output: where it may go, and what it must be

  logic [39:0] out_ring, out_slot;
  logic [40:0] out_end;
  logic [63:0] out_right;
  logic out_is_header;
  always_ff @(posedge clk) begin
    if (out_free) begin
      out_ring <= its_ring;
      out_slot <= its_slot;
      out_end <= its_end;
      out_is_header <= commit;
      out_right <= commit ? its_header : word;
    end
  end

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
        assert (lookup_enabled && filled < slots);
        assert (word[63:62] == 2'b10 && word[33:26] == node && !last);
        assert ({1'b0, word[5:0]} + {1'b0, word[17:12]} <= {1'b0, word[11:6]});
      end
      // The tail moves with it, by one, and for its thread.
      assert (tail_write == received);
      if (received) assert (tail_value == lookup_tail + 13'd1 && tail_thread == word[25:18]);
      // A packet has one fate.
      assert (2'(received) + 2'(fault_node) + 2'(fault_closed) + 2'(fault_data) <= 2'd1);
      // A header has its fate when it moves on, and neither before nor after.
      if (valid && is_header) assert (in_ready == (received || fault_node || fault_closed || fault_data));
      // A write goes into the slot of its packet, which is in the ring of its mailbox, and is the word that it should be: a
      // header at the beginning, never 0, and data behind.
      if (out_valid) begin
        assert (out_address[39:7] == out_slot[39:7] && out_slot[6:0] == 7'd0);
        assert (out_slot >= out_ring && {1'b0, out_slot} < out_end);
        assert (out_address[2:0] == 3'd0 && out_data == out_right);
          assert (out_is_header ? out_address[6:0] == 7'd0 && out_data[63] : out_address[6:3] != 4'd0);
      end
      // The header goes last: no data of this packet can follow it, as the next word is another header.
      if (commit) assert (!is_data);
      // The packet before is written, or is just being, when the next has a slot.
      if (received) assert (!unwritten || (commit && out_free));
      // Only a full mailbox and a host that takes nothing stop the network.
      if (out_ready && !(judged && !dropped && full)) assert (in_ready);
      // What the state means: by this the rest follows from one cycle to the next.
      assert (at_header == (words_left == 4'd0));
      if (valid) assert (at_header == last);
      if (valid && is_header && !commit) assert (!unwritten);
      if (commit) assert (unwritten);
      if (is_data) assert (unwritten);
      if (unwritten && !commit) assert (valid ? !is_header : !at_header);
      if (unwritten && !commit) assert (!discard);
      if ((commit || !unwritten) && !(valid && is_header) && (valid || !at_header)) assert (discard);
      // The next data go where words are left in the line: `place` is the word after them.
      if (unwritten && !commit) assert ({1'b0, place} + {1'b0, words_left} + {4'd0, valid} <= 5'd9);
      if (valid && is_header) assert ({1'b0, words_left} + {2'b0, word[5:3]} <= 5'd8);
      if (unwritten && !commit) assert (place >= 4'd1 && place <= 4'd8);
      if (unwritten) begin
        assert (header == its_header && its_header[63] && {slot, 7'd0} == its_slot);
        assert ((its_mask & (its_mask + 7'd1)) == 0 && (its_page[6:0] & its_mask) == 0);
      end
    end
  end
