/** One way through: connections to `bind` go on to `target`. Each side may be in a namespace; else it is on this machine. */
export interface Door {
  readonly name: string;
  readonly bind: string;
  readonly bindNamespace?: string;
  readonly target: string;
  readonly targetNamespace?: string;
}

/**
 * A test stands outside the network of its bed, and so does the store's server. HAProxy can open sockets in other
 * namespaces than its own, so a second one passes connections in and out, without a look at what they carry.
 */
export function doorsConfig(doors: readonly Door[], adminSocket: string): string {
  const passages = doors.map(
    ({ name, bind, bindNamespace, target, targetNamespace }) => `
listen ${name}
    bind ${bind}${bindNamespace === undefined ? "" : ` namespace ${bindNamespace}`}
    server ${name} ${target}${targetNamespace === undefined ? "" : ` namespace ${targetNamespace}`}
`,
  );
  return `global
    stats socket ${adminSocket} mode 600 level admin

defaults
    mode tcp
    timeout connect 2s
    timeout client 1h
    timeout server 1h
    timeout tunnel 1h
    retries 0
${passages.join("")}`;
}

/** Process ids have 22 bits and loopback addresses 24: no two tests of this machine get the same one. */
export function ownLoopbackAddress(): string {
  const { pid } = process;
  return `127.${64 + (pid >> 16)}.${(pid >> 8) & 255}.${pid & 255}`;
}
