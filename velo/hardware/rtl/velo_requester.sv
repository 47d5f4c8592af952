// The sending side: a store becomes a packet, and nothing is kept.
//
// A transaction of the host's bus is a command and data. The address in the command names the sending thread (by the window
// that the driver mapped for it), the target node and thread, and length and offset of the message: all that a header needs
// but this node's number. The header takes the place of the command, and the data follow in their byte lanes, so nothing is
// shifted. What is no message goes no further and is counted.
//
// One register stage: a word leaves in the cycle after it came, one word in each cycle.
module velo_requester #(
    parameter int N = 28,
    parameter int T = 20
) (
    input logic clk,
    input logic rst,
    // Number of this node.
    input logic [N-T-1:0] node,
    // Transactions of the host.
    input logic in_valid,
    output logic in_ready,
    input logic [63:0] in_data,
    input logic in_last,
    // Packets to the network.
    output logic out_valid,
    input logic out_ready,
    output logic [63:0] out_data,
    output logic out_last,
    // For one cycle each: a packet was sent, a store was no message.
    output logic sent,
    output logic bad
);
  localparam int THREAD_BITS = T - velo_pkg::PAGE_BITS;
  localparam int ENDPOINT_PAD = velo_pkg::ENDPOINT_BITS - (N - velo_pkg::PAGE_BITS);

  // What the next word is: a command, or the first of the data. And whether the words of this transaction go nowhere.
  logic at_command, at_first;
  logic discard;
  // The first byte of the first data word, and how many bytes from the beginning of the next word on belong to the data.
  logic [2:0] start;
  logic [6:0] left;

  // What the command says.
  wire [THREAD_BITS-1:0] thread = in_data[N+:THREAD_BITS];
  wire [N-velo_pkg::PAGE_BITS-1:0] target = in_data[N-1:velo_pkg::PAGE_BITS];
  wire [5:0] length = in_data[velo_pkg::LENGTH_SHIFT+:velo_pkg::LINE_BITS];
  wire [5:0] offset = in_data[velo_pkg::LINE_BITS-1:0];
  wire [5:0] data = in_data[velo_pkg::COMMAND_DATA_SHIFT+:velo_pkg::LINE_BITS];
  wire outside = |in_data[velo_pkg::COMMAND_DATA_SHIFT-1:N+THREAD_BITS];
  // Both lengths are less one, so this is the last byte of the data behind the last byte of the message.
  wire behind = {1'b0, offset} + {1'b0, data} > {1'b0, length};
  wire no_message = outside || behind || in_last;

  wire [63:0] header = {
    velo_pkg::FIXED,
    {ENDPOINT_PAD{1'b0}},
    node,
    thread,
    {ENDPOINT_PAD{1'b0}},
    target,
    data,
    length,
    offset
  };

  // The bytes of a word that belong to the data.
  wire is_full = |left[6:3];
  logic [7:0] keep;
  always_comb begin
    for (int i = 0; i < 8; i = i + 1) begin
      keep[i] = (is_full || 3'(i) < left[2:0]) && (!at_first || 3'(i) >= start);
    end
  end

  logic [63:0] word;
  always_comb begin
    for (int i = 0; i < 64; i = i + 1) begin
      word[i] = at_command ? header[i] : in_data[i] && keep[i/8];
    end
  end

  assign in_ready = out_ready || !out_valid;
  wire take = in_valid && in_ready;
  wire drop = at_command ? no_message : discard;
  assign bad  = take && at_command && no_message;
  assign sent = take && in_last && !drop;

  always_ff @(posedge clk) begin
    if (take) begin
      out_data <= word;
      out_last <= in_last;
      at_command <= in_last;
      at_first <= at_command;
      discard <= drop;
      start <= offset[2:0];
      left <= at_command ? {1'b0, data} + {4'b0, offset[2:0]} + 7'd1 : left - 7'd8;
    end
    if (in_ready) out_valid <= in_valid && !drop;
    if (rst) begin
      out_valid <= 1'b0;
      at_command <= 1'b1;
    end
  end

`ifdef FORMAL
  `include "velo_requester.svh"
`endif
endmodule
