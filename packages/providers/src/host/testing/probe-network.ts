import type { Sandbox } from "@sandpiper/core";

/** Prints what ends a connection and a datagram to another machine. */
const PROBE = `import socket
tcp = socket.socket()
tcp.settimeout(20)
try:
  tcp.connect(("192.0.2.1", 80))
  print("tcp", tcp.recv(1))
except OSError as error: print("tcp", type(error).__name__)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.settimeout(20)
try:
  udp.connect(("192.0.2.1", 443))
  udp.send(b"quic")
  udp.recv(1)
except OSError as error: print("udp", type(error).__name__)`;

/** Runs in a sandbox that has Python. */
export async function probeNetwork(sandbox: Sandbox): Promise<string> {
  return (await sandbox.exec(["python3", "-c", PROBE])).stdout;
}

/**
 * What the probe prints in a sandbox whose network is redirected and leads nowhere. Without the redirection there is no
 * route, or nothing answers. The agent accepts a connection before it refuses it.
 */
export const REFUSES_AT_ONCE = /^tcp (ConnectionRefusedError|ConnectionResetError|b'')\nudp ConnectionRefusedError\n$/;
