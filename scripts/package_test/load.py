"""Load on a service: load.py PORT FILE RESULT. Eight clients ask for / until SIGTERM, half of them over connections that are kept.

Each answer must be FILE, compressed by gzip. RESULT gets the number of requests, how many were lost, and why.
"""
import gzip, http.client, os, signal, sys, threading, time
right, ends, done, lost = open(sys.argv[2], "rb").read(), threading.Event(), [0] * 8, []

def client(number):
    keeps, connection, used = number % 2, None, False
    while not ends.is_set():
        used = connection is not None
        connection = connection or http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=20)
        try:
            connection.request("GET", "/", headers={"Accept-Encoding": "gzip", "Connection": "keep-alive" if keeps else "close"})
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200 or gzip.decompress(body) != right:
                lost.append(f"{answer.status} and {len(body)} bytes")
            if answer.will_close:
                connection = None
        except (OSError, EOFError, http.client.HTTPException) as problem:
            lost.append(("used " if used else "new ") + repr(problem))
            connection = None
        done[number] += 1

signal.signal(signal.SIGTERM, lambda *_: ends.set())
clients = [threading.Thread(target=client, args=(number,)) for number in range(len(done))]
for each in clients:
    each.start()
while any([each.is_alive() for each in clients]):
    time.sleep(0.1)
    with open(sys.argv[3] + ".new", "w") as file:
        file.write(f"{sum(done)} {len(lost)} {' | '.join(sorted(set(lost)))}\n")
    os.replace(file.name, sys.argv[3])
