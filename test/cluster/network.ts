import { inNamespace, ip } from "./namespaces.ts";

/** Every bed uses the same addresses inside its namespaces; the machine's own interfaces do not show them. */
const HUB_ADDRESS = "10.77.0.1";

/** A network namespace that looks like a machine to its programs. */
export interface Host {
  readonly address: string;
  /** The command line that runs `argv` there. */
  enter(argv: readonly string[]): readonly [string, ...string[]];
}

/** Hosts in their own network namespaces, connected by a bridge in another one, the hub. */
export class Network {
  readonly #bed: string;
  readonly hubAddress = HUB_ADDRESS;
  readonly hubNamespace: string;

  private constructor(bed: string) {
    this.#bed = bed;
    this.hubNamespace = `${bed}-hub`;
  }

  static async create(bed: string): Promise<Network> {
    const network = new Network(bed);
    const hub = network.hubNamespace;
    await ip("netns", "add", hub);
    await ip("-n", hub, "link", "set", "lo", "up");
    await ip("-n", hub, "link", "add", "bridge", "type", "bridge");
    await ip("-n", hub, "address", "add", `${HUB_ADDRESS}/24`, "dev", "bridge");
    await ip("-n", hub, "link", "set", "bridge", "up");
    return network;
  }

  /** `name` must be a valid interface name. */
  async addHost(name: string, lastByte: number): Promise<Host> {
    const namespace = `${this.#bed}-${name}`;
    const address = `10.77.0.${lastByte}`;
    await ip("netns", "add", namespace);
    const hub = ["-n", this.hubNamespace, "link"];
    await ip(...hub, "add", name, "type", "veth", "peer", "name", "eth0", "netns", namespace);
    await ip(...hub, "set", name, "master", "bridge", "up");
    await ip("-n", namespace, "link", "set", "lo", "up");
    await ip("-n", namespace, "address", "add", `${address}/24`, "dev", "eth0");
    await ip("-n", namespace, "link", "set", "eth0", "up");
    return { address, enter: (argv) => inNamespace(namespace, argv) };
  }

  /** Drops all packets between this host and other isolated hosts. */
  async isolate(name: string): Promise<void> {
    await ip("-n", this.hubNamespace, "link", "set", name, "type", "bridge_slave", "isolated", "on");
  }

  /** Drops all packets to and from the host, without closing connections. */
  async cut(name: string): Promise<void> {
    await ip("-n", this.hubNamespace, "link", "set", name, "down");
  }

  async heal(name: string): Promise<void> {
    await ip("-n", this.hubNamespace, "link", "set", name, "up");
  }
}
