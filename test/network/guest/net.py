"""What tests do with the network from inside of a sandbox. Each function prints what it saw."""

import base64
import os
import socket
import ssl
import struct
import sys

TIMEOUT = 10


def connect(host, port, family=socket.AF_UNSPEC):
    error = OSError(f"no address for {host}")
    for kind, _, _, _, address in socket.getaddrinfo(host, int(port), family, socket.SOCK_STREAM):
        found = socket.socket(kind, socket.SOCK_STREAM)
        found.settimeout(TIMEOUT)
        try:
            found.connect(address)
            return found
        except OSError as failed:
            found.close()
            error = failed
    raise error


def read_all(connection):
    pieces = []
    while piece := connection.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)


def request(connection, host, path="/"):
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    return read_all(connection).decode(errors="replace")


def get(host, port=80, name=None, path="/"):
    """The answer to a plain request; `name` is the Host header if it differs from the host."""
    with connect(host, port) as connection:
        return request(connection, name or host, path)


def get_tls(host, port=443, sni="same", name=None, path="/"):
    """The answer to a request over TLS; `sni` None sends no server name."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with connect(host, port) as plain:
        with context.wrap_socket(plain, server_hostname=host if sni == "same" else sni) as connection:
            return request(connection, name or host, path)


def echo(host, port, text):
    with connect(host, port) as connection:
        connection.sendall(text.encode())
        connection.shutdown(socket.SHUT_WR)
        return read_all(connection).decode()


def greeting(host, port):
    """The first line of a server that speaks first, and its echo of a line."""
    with connect(host, port) as connection:
        lines = connection.makefile("rwb")
        first = lines.readline().decode()
        lines.write(b"hello\n")
        lines.flush()
        return first + lines.readline().decode()


def count(host, port, size):
    """What the server counted after this side ended."""
    piece = b"x" * 65536
    left = int(size)
    with connect(host, port) as connection:
        connection.settimeout(300)
        while left > 0:
            connection.sendall(piece[: min(left, len(piece))])
            left -= len(piece)
        connection.shutdown(socket.SHUT_WR)
        return read_all(connection).decode()


def receive(host, port, size):
    total = 0
    with connect(host, port) as connection:
        connection.settimeout(300)
        connection.sendall(f"{size}\n".encode())
        while piece := connection.recv(1 << 20):
            total += len(piece)
    return f"{total}\n"


def many(host, port, times):
    """Connections one after another, each with an answer."""
    address = socket.getaddrinfo(host, int(port), socket.AF_INET, socket.SOCK_STREAM)[0][4]
    good = 0
    for number in range(int(times)):
        with socket.create_connection(address, TIMEOUT) as connection:
            text = f"{number}".encode()
            connection.sendall(text)
            good += connection.recv(64) == text
    return f"{good}\n"


def hold(host, port):
    """Keeps a connection: sends each line of the input and prints the answer, until either side ends."""
    connection = connect(host, port)
    connection.settimeout(None)
    print("open", flush=True)
    while line := sys.stdin.buffer.readline():
        try:
            connection.sendall(line)
            answer = connection.recv(65536)
        except OSError as error:
            return f"ended: {error.strerror}\n"
        if not answer:
            return "ended\n"
        print(answer.decode().strip(), flush=True)
    return ""


def watch(host, port):
    """Keeps a silent connection, and prints when it ends."""
    connection = connect(host, port)
    connection.settimeout(None)
    print("open", flush=True)
    try:
        while connection.recv(65536):
            pass
        return "ended\n"
    except OSError as error:
        return f"ended: {error.strerror}\n"


def web_socket(host, port, text):
    """The echo of one message over a WebSocket."""
    with connect(host, port) as connection:
        key = base64.b64encode(os.urandom(16)).decode()
        head = f"GET /echo HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        connection.sendall(f"{head}Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        lines = connection.makefile("rb")
        while lines.readline() != b"\r\n":
            pass
        mask, data = os.urandom(4), text.encode()
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
        connection.sendall(struct.pack("!BB", 0x81, 0x80 | len(data)) + mask + masked)
        return lines.read(2 + len(data))[2:].decode() + "\n"


def resolve(name):
    return " ".join(sorted({found[4][0] for found in socket.getaddrinfo(name, 80)})) + "\n"


def datagram(host, port, text="hello"):
    """What a server answers over UDP, within a second."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.settimeout(1)
        sender.sendto(text.encode(), (host, int(port)))
        return sender.recvfrom(65536)[0].decode(errors="replace")


if __name__ == "__main__":
    try:
        sys.stdout.write(globals()[sys.argv[1]](*sys.argv[2:]))
    except OSError as error:
        sys.exit(f"{type(error).__name__}: {error}")
