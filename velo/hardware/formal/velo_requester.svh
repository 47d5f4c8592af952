// What must hold of velo_requester, whatever comes from the host and whenever the network takes it. Read within the module.
//
// The bus is assumed to keep its rules: a word that waits does not change, and a transaction has the words that its command says.

  // The number of the node is set once.
  always_ff @(posedge clk) if (!$initstate) assume ($stable(node));
  always_comb assume (rst == $initstate);

  // ---- what the host has posted of this transaction
  logic [3:0] posted_words;
  logic [63:0] posted_command;
  wire [63:0] asked = posted_words == 0 ? in_data : posted_command;
  wire [6:0] end_ = {1'b0, asked[63:58]} + {4'b0, asked[2:0]} + 7'd1;
  wire [3:0] posted_expected = 4'((end_ + 7'd7) >> 3);
  always_ff @(posedge clk) begin
    if (take) begin
      posted_words <= in_last ? 4'd0 : posted_words + 4'd1;
      if (posted_words == 0) posted_command <= in_data;
    end
    if (rst) posted_words <= 4'd0;
  end
  always_comb begin
    if (in_valid) assume (in_last == (posted_words == posted_expected && posted_words != 0));
  end
  always_ff @(posedge clk) begin
    if (!rst && $past(in_valid && !in_ready && !rst)) begin
      assume (in_valid && $stable(in_data) && $stable(in_last));
    end
  end

  // ---- what must leave: the model keeps one word, as there is one register
  wire is_message = asked[57:36] == 0 && {1'b0, asked[5:0]} + {1'b0, asked[63:58]} <= {1'b0, asked[11:6]};
  wire [63:0] right_header = {2'b10, 6'd0, node, asked[35:28], 6'd0, asked[27:12], asked[63:58], asked[11:0]};
  logic [63:0] masked;
  always_comb begin
    for (int i = 0; i < 8; i = i + 1) begin
      // Byte i of this data word is this byte of the message, counted from the cache line's word with the first byte.
      masked[8*i+:8] = ({posted_words - 4'd1, 3'd0} + 7'(i) >= 7'(asked[2:0])) && ({posted_words - 4'd1, 3'd0} + 7'(i) < end_) ? in_data[8*i+:8] : 8'd0;
    end
  end
  logic due, due_last;
  logic [63:0] due_data;
  always_ff @(posedge clk) begin
    if (in_ready) due <= in_valid && is_message;
    if (take) begin
      due_data <= posted_words == 0 ? right_header : masked;
      due_last <= in_last;
    end
    if (rst) due <= 1'b0;
  end

  always_ff @(posedge clk) begin
    // A word that waits does not change.
    if (!rst && $past(out_valid && !out_ready && !rst)) assert (out_valid && $stable(out_data) && $stable(out_last));
  end

  always_comb begin
    if (!rst) begin
      // Each word of a message leaves once, right, and in the next cycle; nothing else does.
      assert (out_valid == due);
      if (out_valid) assert (out_data == due_data && out_last == due_last);
      // It never waits for anything but the network.
      if (out_ready) assert (in_ready);
      assert (bad == (take && posted_words == 0 && !is_message));
      assert (sent == (take && in_last && is_message));
      // What the state means: by this the rest follows from one cycle to the next.
      assert (posted_words <= 4'd9);
      assert (at_command == (posted_words == 0));
      if (posted_words != 0) begin
        assert (at_first == (posted_words == 1));
        assert (discard == !is_message);
        if (at_first) assert (start == posted_command[2:0]);
        assert (left == end_ - {posted_words - 4'd1, 3'd0});
        assert (posted_words <= posted_expected);
      end
    end
  end
