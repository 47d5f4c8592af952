"""Three boards of example.toml, each in a thread of its own."""

import threading

import evb_front_end


def send_all(source):
    with evb_front_end.FrontEnd(f"127.0.0.1:{9101 + source}", source) as board:
        for event in range(1, 1001):
            board.send(event, bytes([event % 256]) * 1000, mark=event)
        board.end_of_run()


boards = [threading.Thread(target=send_all, args=[source]) for source in range(3)]
for board in boards:
    board.start()
for board in boards:
    board.join()
