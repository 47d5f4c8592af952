// Any input to any output: a packet holds its output from its header to its last word, and inputs that want the same output
// have it in turn. The word after a header follows as soon as it is there (virtual cut-through): whoever sends must have room
// for the packet behind the output, or others wait for it. One register at each output.
module velo_crossbar #(
    parameter int PORTS = 2,
    parameter int PORT_BITS = PORTS > 1 ? $clog2(PORTS) : 1
) (
    input logic clk,
    input logic rst,
    input logic [PORTS-1:0] in_valid,
    output logic [PORTS-1:0] in_ready,
    input logic [PORTS*64-1:0] in_data,
    input logic [PORTS-1:0] in_last,
    // Output of the packet whose header an input shows; it means nothing while the input shows another word.
    input logic [PORTS*PORT_BITS-1:0] in_port,
    output logic [PORTS-1:0] out_valid,
    input logic [PORTS-1:0] out_ready,
    output logic [PORTS*64-1:0] out_data,
    output logic [PORTS-1:0] out_last
);
  // By input: the next word is a header. By output and input: what an input wants, and what it gets in this cycle.
  logic [PORTS-1:0] at_header;
  logic [PORTS-1:0] wants[PORTS];
  logic [PORTS-1:0] gets[PORTS];

  always_comb begin
    for (int i = 0; i < PORTS; i = i + 1) begin
      in_ready[i] = 1'b0;
      for (int o = 0; o < PORTS; o = o + 1) begin
        wants[o][i] = in_valid[i] && at_header[i] && in_port[i*PORT_BITS+:PORT_BITS] == PORT_BITS'(o);
        if (gets[o][i]) in_ready[i] = 1'b1;
      end
    end
  end

  always_ff @(posedge clk) begin
    for (int i = 0; i < PORTS; i = i + 1) begin
      if (in_valid[i] && in_ready[i]) at_header[i] <= in_last[i];
    end
    if (rst) at_header <= '1;
  end

  for (genvar o = 0; o < PORTS; o = o + 1) begin : outputs
    // The input that has this output, one bit each, and the inputs after the one that had it last.
    logic [PORTS-1:0] owner;
    logic [PORTS-1:0] after;

    // The first of those after the last, or the first of all.
    wire [PORTS-1:0] later = wants[o] & after;
    wire [PORTS-1:0] next = |later ? later & (~later + 1'b1) : wants[o] & (~wants[o] + 1'b1);
    wire free = out_ready[o] || !out_valid[o];
    wire [PORTS-1:0] holder = |owner ? owner & in_valid : next;
    assign gets[o] = free ? holder : '0;

    logic [63:0] word;
    logic is_last;
    always_comb begin
      word = '0;
      is_last = 1'b0;
      for (int i = 0; i < PORTS; i = i + 1) begin
        word = word | (in_data[i*64+:64] & {64{holder[i]}});
        is_last = is_last || (in_last[i] && holder[i]);
      end
    end

    always_ff @(posedge clk) begin
      if (free) begin
        out_valid[o] <= |holder;
        out_data[o*64+:64] <= word;
        out_last[o] <= is_last;
        if (|holder) begin
          owner <= is_last ? '0 : holder;
          // All bits above the one of the holder.
          after <= ~(holder | (holder - 1'b1));
        end
      end
      if (rst) begin
        out_valid[o] <= 1'b0;
        owner <= '0;
        after <= '0;
      end
    end
  end
endmodule
