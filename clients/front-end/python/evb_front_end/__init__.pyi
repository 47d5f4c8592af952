from types import TracebackType
from typing import Any, List, NamedTuple, Optional, Tuple, Type, Union

# An object with the buffer protocol. Before Python 3.12 there is no type for it.
_Buffer = Any

class Counts(NamedTuple):
    fragments: int
    bytes: int
    reconnects: int
    waits: int
    repeated: int
    unconfirmed_bytes: int

class FrontEnd:
    def __init__(
        self,
        address: str,
        source: int = 0,
        *,
        timeout: float = 10.0,
        connect_timeout: float = 10.0,
        retry: float = 0.1,
        buffer_bytes: int = 65536,
        linger: float = 0.001,
    ) -> None: ...
    def send(
        self,
        counter: int,
        payload: Union[_Buffer, List[_Buffer], Tuple[_Buffer, ...]],
        mark: Optional[int] = None,
        *,
        damaged: bool = False,
        resynchronised: bool = False,
    ) -> None: ...
    def flush(self) -> None: ...
    def end_of_run(self, last_counter: Optional[int] = None) -> None: ...
    def close(self, timeout: Optional[float] = None) -> None: ...
    def statistics(self) -> Counts: ...
    def __enter__(self) -> "FrontEnd": ...
    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None: ...

def crc32c(data: _Buffer, before: int = 0) -> int: ...

class Control:
    def __init__(self, address: str, board: object, listen: bool = True) -> None: ...
    @property
    def port(self) -> int: ...
    def busy(self) -> None: ...
    def ready(self) -> None: ...
    def problem(self, text: str) -> None: ...
    def wait(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> "Control": ...
    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None: ...
