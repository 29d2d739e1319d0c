"""A service of gRPC and its client, by Google's implementation for Python (grpcio); messages are bytes as they are.

    peer.py server ADDRESS [FILE with a certificate and its key]
    peer.py client ADDRESS [FILE with a certificate to trust]

The client prints a line for each thing that it has tried, as main.go does.
"""

import sys
import threading
import time
from concurrent import futures

import grpc

cancelled = 0
lock = threading.Lock()


def echo(asked, context):
    context.send_initial_metadata((("x-head", "ahead"),))
    context.set_trailing_metadata((("x-sum", str(len(asked))),))
    return asked


def fail(_, context):
    context.abort(grpc.StatusCode.NOT_FOUND, "no such thing")


def collect(pieces, _):
    count = total = 0
    for piece in pieces:
        count, total = count + 1, total + len(piece)
    return f"{count} {total}".encode()


def split(asked, _):
    for _ in range(int(asked)):
        yield b"x" * 10000


def talk(pieces, _):
    yield from pieces


def late(asked, context):
    yield asked
    context.abort(grpc.StatusCode.ABORTED, "too late: 100 % über")


def wait(asked, context):
    over = threading.Event()

    def ended():
        global cancelled
        with lock:
            cancelled += 1
        over.set()

    # Counted here: a call that ends before this has gone on from its answer never goes on.
    context.add_callback(ended)
    yield asked
    over.wait()


def has_deadline(_, context):
    left = context.time_remaining()
    return b"true" if left is not None and left < 3600 else b"false"


def serve(address, pem):
    unary = {
        "Echo": echo,
        "Fail": fail,
        "HasDeadline": has_deadline,
        "Cancelled": lambda *_: str(cancelled).encode(),
    }
    handlers = {name: grpc.unary_unary_rpc_method_handler(answer) for name, answer in unary.items()}
    handlers["Collect"] = grpc.stream_unary_rpc_method_handler(collect)
    handlers["Talk"] = grpc.stream_stream_rpc_method_handler(talk)
    for name, answer in {"Split": split, "Late": late, "Wait": wait}.items():
        handlers[name] = grpc.unary_stream_rpc_method_handler(answer)
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=20))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("terse.Echo", handlers),))
    if pem:
        with open(pem, "rb") as file:
            text = file.read()
        server.add_secure_port(address, grpc.ssl_server_credentials(((text, text),)))
    else:
        server.add_insecure_port(address)
    server.start()
    server.wait_for_termination()


def code(error):
    """The code as Go writes it."""
    return "".join(word.capitalize() for word in error.code().name.split("_"))


def failure(call):
    """What a call that shall fail has failed with."""
    try:
        call()
    except grpc.RpcError as error:
        return error
    raise AssertionError("no error")


def ask(address, root):
    if root:
        with open(root, "rb") as file:
            trust = grpc.ssl_channel_credentials(file.read())
        channel = grpc.secure_channel(address, trust, (("grpc.ssl_target_name_override", "localhost"),))
    else:
        channel = grpc.insecure_channel(address)
    unary = lambda name: channel.unary_unary(f"/terse.Echo/{name}")
    told, call = unary("Echo").with_call(b"hello")
    head, tail = dict(call.initial_metadata()), dict(call.trailing_metadata())
    print("unary", told.decode(), f"[{head.get('x-head')}]", f"[{tail.get('x-sum')}]", "OK")
    large = b"0123456789" * 300000
    print("large", str(unary("Echo")(large) == large).lower(), "OK")
    print("empty", len(unary("Echo")(b"")), "OK")
    told = channel.stream_unary("/terse.Echo/Collect")(bytes(1000) for _ in range(1000))
    print("client streaming", told.decode(), "OK")
    pieces = [len(piece) for piece in channel.unary_stream("/terse.Echo/Split")(b"300")]
    print("server streaming", len(pieces), sum(pieces), "true")

    # Each message waits for the one before to come back.
    back = threading.Semaphore(1)
    def messages():
        for number in range(200):
            back.acquire()
            yield str(number).encode()
    count = 0
    for number, told in enumerate(channel.stream_stream("/terse.Echo/Talk")(messages())):
        count += told == str(number).encode()
        back.release()
    print("both ways", count, "true")

    error = failure(lambda: unary("Fail")(b""))
    print("error", code(error), error.details())
    print("no method", code(failure(lambda: unary("Nothing")(b""))))
    call = channel.unary_stream("/terse.Echo/Late")(b"first")
    told = next(call)
    error = failure(lambda: next(call))
    print("late error", told.decode(), code(error), error.details())

    print("deadline told", unary("HasDeadline")(b"", timeout=60).decode(), "OK")
    count = lambda: int(unary("Cancelled")(b""))

    def another(before):
        until = time.monotonic() + 10
        while time.monotonic() < until:
            if count() > before:
                return "true"
        return "false"

    before = count()
    call = channel.unary_stream("/terse.Echo/Wait")(b"wait", timeout=0.5)
    next(call)
    # A server whose own clock is ahead by a hair cancels the stream, which this client takes for just that.
    print("deadline", code(failure(lambda: next(call))).replace("Cancelled", "DeadlineExceeded"), another(before))
    before = count()
    call = channel.unary_stream("/terse.Echo/Wait")(b"wait")
    next(call)
    call.cancel()
    # Go spells it with two l.
    print("cancellation", code(failure(lambda: next(call))).replace("Cancelled", "Canceled"), another(before))
    calls = [(str(number).encode(), unary("Echo").future(str(number).encode())) for number in range(500)]
    print("together", sum(call.result() == message for message, call in calls))


if __name__ == "__main__":
    words = sys.argv[1:] + ["", ""]
    (serve if words[0] == "server" else ask)(words[1], words[2])
