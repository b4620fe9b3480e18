import { addresses } from "../world/addresses.ts";
import { type Attempt, attempt, get, HOST_PORT, HOST_SOCKET } from "./attempt.ts";

const SITE = addresses.site;
const PRIVATE = addresses.private10;

/** Runs a program that changes the network inside, and then tries again. */
const after = (...commands: readonly (readonly string[])[]): string =>
  [
    "import subprocess",
    ...commands.map((argv) => attempt(`subprocess.run(${JSON.stringify(argv)}, capture_output=True, text=True)`)),
    get([PRIVATE], [addresses.metadata]),
  ].join("\n");

/** Sends bytes with a socket of another kind, and waits for any answer from outside. */
const send = (create: string, bytes: string, target: string): string => `
try:
    with ${create} as sender:
        sender.settimeout(1)
        sender.sendto(${bytes}, ${target})
        piece, source = sender.recvfrom(65536)
        print("answered by", source)
except (OSError, AttributeError) as error:
    print("failed:", error)
`;

const ECHO_REQUEST = 'struct.pack("!BBHHH", 8, 0, 0xf7fd, 1, 1)';
const answered = (address: string): RegExp => new RegExp(`answered by .*${address.replaceAll(".", "\\.")}`);

/** Connects after an option is set, which may change the path of packets. */
const withOption = (option: string, target = PRIVATE): string => `
try:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.settimeout(5)
        try: connection.setsockopt(${option})
        except OSError as error: print("option:", error)
        connection.connect(("${target}", 80))
        print(net.request(connection, "${target}"))
except OSError as error:
    print("failed:", error)
`;

/** Attempts with other kinds of sockets, devices, namespaces and changes of the sandbox's own network. */
export const socketAttempts: readonly Attempt[] = [
  { name: "a direct connection to the agent's port for TCP", script: get(["127.0.0.1", 15_001]) },
  {
    name: "a request to the agent's port in its own words",
    script: `
try:
    with net.connect("127.0.0.1", 15001) as connection:
        connection.sendall(b'{"kind":"flow","flow":1,"name":null,"address":"${PRIVATE}","port":80}\\nGET / HTTP/1.0\\r\\n\\r\\n')
        print(net.read_all(connection))
except OSError as error: print("failed:", error)`,
  },
  {
    name: "taking over the agent's ports",
    script: `
for port in (15001, 15053, 15054):
    try:
        taken = socket.socket()
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind(("127.0.0.1", port)); taken.listen()
    except OSError as error: print("failed:", error)
${get([PRIVATE])}`,
  },
  {
    name: "flushing the redirection with iptables",
    script: after(["iptables", "-t", "nat", "-F"], ["iptables-legacy", "-t", "nat", "-F"]),
  },
  {
    name: "replacing the redirection with nft",
    script: after(["nft", "flush", "ruleset"], ["nft", "add", "table", "ip", "x"]),
  },
  {
    name: "replacing the redirection through a raw socket",
    script: `
try:
    control = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    # IPT_SO_SET_REPLACE with an empty table.
    control.setsockopt(socket.IPPROTO_IP, 64, b"nat".ljust(32, b"\\0") + bytes(96))
except OSError as error: print("failed:", error)
${get([PRIVATE])}`,
  },
  {
    name: "another default route",
    script: after(["ip", "route", "replace", "default", "dev", "lo"], ["ip", "route", "flush", "all"]),
  },
  {
    name: "an address of the private network on its own interface",
    script: after(["ip", "address", "add", "10.99.0.99/24", "dev", "lo"]),
  },
  {
    name: "new interfaces",
    script: after(
      ["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"],
      ["ip", "link", "add", "d0", "type", "dummy"],
      ["ip", "link", "add", "link", "lo", "name", "m0", "type", "macvlan"],
    ),
  },
  {
    name: "its own user and network namespace",
    script:
      after(["unshare", "-Urn", "sh", "-c", "ip link set lo up; ip route"]) +
      `
${attempt(`subprocess.run(["unshare", "-Urn", "python3", "/tmp/network/net.py", "get", "${PRIVATE}"], capture_output=True, text=True).stdout`)}`,
  },
  { name: "the network namespace of another process", script: after(["nsenter", "-t", "1", "-n", "ip", "route"]) },
  {
    name: "a TUN device",
    script: `
import fcntl
for path in ("/dev/net/tun", "/tmp/network/tun"):
    try:
        if path.startswith("/tmp"): os.mknod(path, 0o20666, os.makedev(10, 200))
        device = os.open(path, os.O_RDWR)
        fcntl.ioctl(device, 0x400454ca, struct.pack("16sH14s", b"tun0", 0x1001, b""))
        print("attached a TUN device")
    except OSError as error: print("failed:", error)`,
    escaped: /attached/,
  },
  {
    name: "a raw ICMP socket",
    script: send("socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)", ECHO_REQUEST, `("${SITE}", 0)`),
    escaped: answered(SITE),
  },
  {
    name: "an unprivileged ICMP socket",
    script: send(
      "socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)",
      ECHO_REQUEST,
      `("${PRIVATE}", 0)`,
    ),
    escaped: answered(PRIVATE),
  },
  {
    name: "ICMP of IPv6",
    script: send(
      "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM, socket.IPPROTO_ICMPV6)",
      'struct.pack("!BBHHH", 128, 0, 0, 1, 1)',
      `("${addresses.uniqueLocalV6}", 0)`,
    ),
    escaped: /answered by/,
  },
  {
    name: "a hand-made IP packet through a raw socket",
    script: send(
      "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)",
      `struct.pack("!BBHHHBBH4s4s", 69, 0, 28, 1, 0, 64, 17, 0, bytes(4), socket.inet_aton("${PRIVATE}")) + struct.pack("!4H", 999, 7, 8, 0)`,
      `("${PRIVATE}", 0)`,
    ),
    escaped: answered(PRIVATE),
  },
  {
    name: "frames through a packet socket",
    script: send(
      "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))",
      "bytes(12) + b'\\\\x08\\\\x06' + bytes(46)",
      '("eth0", 0)',
    ),
    escaped: /answered by/,
  },
  { name: "UDP to a public server", script: attempt(`net.datagram("${SITE}", 7)`) },
  { name: "UDP to a private address", script: attempt(`net.datagram("${PRIVATE}", 7)`) },
  { name: "QUIC", script: attempt(`net.datagram("${SITE}", 443, "QUIC")`) },
  {
    name: "UDP over IPv6",
    script: `${attempt(`net.datagram("${addresses.siteV6}", 7)`)}\n${attempt(`net.datagram("::ffff:${PRIVATE}", 7)`)}`,
  },
  { name: "UDP to the host's loopback", script: attempt(`net.datagram("127.0.0.1", ${HOST_PORT})`) },
  {
    name: "broadcast",
    script: `
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    sender.settimeout(1)
    try:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sender.sendto(b"x", ("255.255.255.255", 7))
        print(sender.recvfrom(100))
    except OSError as error: print("failed:", error)`,
  },
  {
    name: "multicast, as mDNS uses it",
    script: `
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    sender.settimeout(1)
    try:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("224.0.0.251") + bytes(4))
    except OSError as error: print("option:", error)
    try:
        sender.sendto(b"x", ("224.0.0.251", 7))
        print(sender.recvfrom(100))
    except OSError as error: print("failed:", error)`,
  },
  {
    name: "a source route",
    script: withOption(
      `socket.IPPROTO_IP, socket.IP_OPTIONS, bytes([131, 7, 4]) + socket.inet_aton("${PRIVATE}") + bytes(1)`,
    ),
  },
  { name: "a packet mark", script: withOption("socket.SOL_SOCKET, 36, 1") },
  { name: "binding to an interface", script: withOption('socket.SOL_SOCKET, 25, b"eth0"') },
  { name: "a foreign source address", script: withOption("socket.IPPROTO_IP, 19, 1") },
  {
    name: "TCP Fast Open",
    script: `
with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
    connection.settimeout(5)
    try:
        connection.sendto(b"GET / HTTP/1.0\\r\\n\\r\\n", 0x20000000, ("${PRIVATE}", 80))
        print(net.read_all(connection))
    except OSError as error: print("failed:", error)`,
  },
  {
    name: "SCTP, DCCP and UDP-Lite",
    script: [132, 33, 136]
      .map((protocol) =>
        send(
          `socket.socket(socket.AF_INET, ${{ 132: "socket.SOCK_STREAM", 33: "6", 136: "socket.SOCK_DGRAM" }[protocol]}, ${protocol})`,
          'b"x"',
          `("${PRIVATE}", 7)`,
        ),
      )
      .join(""),
    escaped: /answered by/,
  },
  {
    name: "an abstract Unix socket of the host",
    script: `
try:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(2)
        connection.connect("\\0${HOST_SOCKET}")
        print(net.read_all(connection))
except OSError as error: print("failed:", error)`,
  },
  {
    name: "a socket to the virtual machine's host (vsock)",
    script: `
for cid in (0, 1, 2):
    for port in (22, 80, 1024, 4747):
        try:
            with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM) as connection:
                connection.settimeout(1)
                connection.connect((cid, port))
                print("connected to", cid, port)
        except (OSError, AttributeError) as error: print("failed:", error)`,
    escaped: /connected/,
  },
  {
    name: "Bluetooth, CAN and other families",
    script: `
for family in (31, 29, 38, 44, 16, 40):
    try:
        with socket.socket(family, socket.SOCK_RAW, 0 if family == 16 else 1) as other: print("made", family)
    except OSError as error: print("failed:", error)
${get([PRIVATE])}`,
  },
  {
    name: "the host's interfaces, neighbours and connections through netlink and /proc",
    script: `
for path in ("/proc/net/dev", "/proc/net/arp", "/proc/net/route", "/proc/net/tcp", "/proc/net/unix"):
    try: print(open(path).read())
    except OSError as error: print("failed:", error)
print(socket.if_nameindex())`,
    escaped: /sandpiper-escape|0B004D0A|veth/i,
  },
];
