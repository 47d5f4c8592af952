"""A board that hears run control: it takes its settings, and sends 1000 fragments when a run starts.

evb runs it with: source = { type = "tcp", listen = "127.0.0.1:9101", control = { connect = "127.0.0.1:9400", settings = { size = 500 } } }
"""

import threading

import evb_front_end


class Board:
    def configure(self, settings):
        if not 0 < settings.get("size", 1000) < 100_000:
            raise ValueError("the size is 1 to 99,999 bytes")
        self.size = settings.get("size", 1000)

    def start(self, run, run_type):
        self.is_running = True
        threading.Thread(target=self.send).start()

    def stop(self):
        self.is_running = False

    def send(self):
        with evb_front_end.FrontEnd("127.0.0.1:9101", source=0) as link:
            for event in filter(lambda _: self.is_running, range(1, 1001)):
                link.send(event, bytes(self.size), mark=event)
            link.end_of_run()


evb_front_end.Control("127.0.0.1:9400", Board()).wait()
