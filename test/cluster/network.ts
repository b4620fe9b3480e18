import { inNamespace, ip } from "./namespaces.ts";

/** Seen from inside, every bed has the same addresses; nothing of it is visible on the machine's own interfaces. */
const HUB_ADDRESS = "10.77.0.1";

/** A place in the network: a machine, as far as its programs can tell. */
export interface Host {
  readonly address: string;
  /** The command line that runs `argv` there. */
  enter(argv: readonly string[]): readonly [string, ...string[]];
}

/** Hosts in network namespaces of their own, joined by a bridge in one more, the hub. */
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

  /** `name` has to fit into the name of an interface. */
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

  /** Nothing reaches the host and nothing leaves it; connections are not told. */
  async cut(name: string): Promise<void> {
    await ip("-n", this.hubNamespace, "link", "set", name, "down");
  }

  async heal(name: string): Promise<void> {
    await ip("-n", this.hubNamespace, "link", "set", name, "up");
  }
}
