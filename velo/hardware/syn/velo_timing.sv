// A node between two rows of registers, so that a chip with few pins can hold it and every path lies between registers: the
// frame in which a place-and-route tool tells how fast a node could be clocked.
module velo_timing (
    input logic clk,
    input logic rst,
    input logic in,
    output logic out
);
  localparam int INPUTS = 66 + 1 + 48 + 17;
  localparam int OUTPUTS = 1 + 105 + 32 + 17;

  logic [INPUTS-1:0] inputs;
  logic [OUTPUTS-1:0] outputs, kept;
  always_ff @(posedge clk) begin
    inputs <= {inputs[INPUTS-2:0], in};
    kept <= in ? outputs : {kept[OUTPUTS-2:0], 1'b0};
    out <= kept[OUTPUTS-1];
  end

  velo_node node (
      .clk,
      .rst,
      .posted_valid(inputs[0]),
      .posted_last(inputs[1]),
      .posted_data(inputs[65:2]),
      .write_credit(inputs[66]),
      .reg_valid(inputs[67]),
      .reg_write(inputs[68]),
      .reg_address(inputs[78:69]),
      .reg_data(inputs[114:79]),
      .rx_start(inputs[115]),
      .rx_data(inputs[131:116]),
      .posted_credit(outputs[0]),
      .write_valid(outputs[1]),
      .write_address(outputs[41:2]),
      .write_data(outputs[105:42]),
      .reg_read(outputs[137:106]),
      .tx_start(outputs[138]),
      .tx_data(outputs[154:139])
  );
endmodule
