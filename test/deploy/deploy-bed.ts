import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { onTestFailed } from "vitest";
import { eventually } from "../../packages/providers/src/docker/testing/eventually.ts";
import { newBedName } from "../cluster/bed-name.ts";
import { type Door, openDoors, ownLoopbackAddress } from "../cluster/doors.ts";
import { type Host, Network } from "../cluster/network.ts";
import { bedDirectory, removeAbandonedBeds, removeBed } from "../cluster/sweep.ts";
import { Container } from "./container.ts";
import type { ContainerOptions } from "./container-spec.ts";
import { assembleImage, type Image } from "./node-image.ts";

const FIRST_DOOR_PORT = 4700;
const DOORS_PER_BED = 10;
const FIRST_ADDRESS = 11;
const SERVER_PORT = 9000;
const SHOWN_LINES = 30;

/** A member of a deployment, and the port that clients of the test reach. */
export interface Member {
  readonly name: string;
  readonly port: number;
  /** Other isolated members cannot reach it. */
  readonly isIsolated?: boolean | undefined;
}

export interface DeployBedOptions {
  /** The host and port of a server on this machine that members reach at `serverUrl`. */
  readonly server?: string | undefined;
}

type Settings = Partial<Pick<ContainerOptions, "command" | "env" | "volumes" | "isRestricted">> & {
  readonly stage?: "node" | "store" | undefined;
};

/** The containers of a deployment in one network, each with its own name and address. */
export class DeployBed implements AsyncDisposable {
  /** Where members reach the server outside of their network. */
  readonly serverUrl: string;
  readonly #name: string;
  readonly #directory: string;
  readonly #images: Readonly<Record<"node" | "store", Image>>;
  readonly #hosts: ReadonlyMap<string, Host>;
  readonly #urls: ReadonlyMap<string, string>;
  readonly #containers = new Map<string, Container>();

  private constructor(
    name: string,
    parts: {
      readonly images: Readonly<Record<"node" | "store", Image>>;
      readonly hosts: ReadonlyMap<string, Host>;
      readonly urls: ReadonlyMap<string, string>;
      readonly serverUrl: string;
    },
  ) {
    this.serverUrl = parts.serverUrl;
    this.#name = name;
    this.#directory = bedDirectory(name);
    this.#images = parts.images;
    this.#hosts = parts.hosts;
    this.#urls = parts.urls;
  }

  static async start(members: readonly Member[], { server }: DeployBedOptions = {}): Promise<DeployBed> {
    await removeAbandonedBeds();
    const { name, number } = newBedName();
    try {
      const directory = bedDirectory(name);
      mkdirSync(directory, { mode: 0o700 });
      const images = {
        node: await assembleImage("node", join(directory, "node-image")),
        store: await assembleImage("store", join(directory, "store-image")),
      };
      const network = await Network.create(name);
      const hosts = new Map<string, Host>();
      for (const [at, member] of members.entries()) {
        hosts.set(member.name, await network.addHost(member.name, FIRST_ADDRESS + at));
        if (member.isIsolated) await network.isolate(member.name);
      }
      const doors = members.map((member, at): Door => {
        const bind = `${ownLoopbackAddress()}:${FIRST_DOOR_PORT + number * DOORS_PER_BED + at}`;
        const target = `${hosts.get(member.name)?.address}:${member.port}`;
        return { name: member.name, bind, target, targetNamespace: network.hubNamespace };
      });
      const { hubAddress, hubNamespace } = network;
      const inward = { name: "server", bind: `${hubAddress}:${SERVER_PORT}`, bindNamespace: hubNamespace };
      await openDoors(directory, server === undefined ? doors : [...doors, { ...inward, target: server }]);
      const urls = new Map(doors.map((door) => [door.name, `http://${door.bind}`]));
      return new DeployBed(name, { images, hosts, urls, serverUrl: `http://${inward.bind}` });
    } catch (error) {
      await removeBed(name);
      throw error;
    }
  }

  /** The URL at which the test reaches a member. */
  urlOf(name: string): string {
    return this.#urls.get(name) ?? "";
  }

  host(name: string): Host {
    return this.#hosts.get(name) as Host;
  }

  /** Addresses of all members, by name. */
  get addresses(): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.#hosts].map(([name, { address }]) => [name, address]));
  }

  container(name: string): Container {
    return this.#containers.get(name) as Container;
  }

  /** Creates a directory that lives as long as the bed, like a volume. */
  volume(name: string): string {
    const path = join(this.#directory, "volumes", name);
    mkdirSync(path, { recursive: true });
    return path;
  }

  /** Starts a member's container, with other names for the members if the deployment has them. */
  async run(name: string, settings: Settings & { readonly names?: (name: string) => string } = {}): Promise<Container> {
    const { stage = "node", env = {}, volumes = [], names = (each) => each, command, isRestricted } = settings;
    const hosts = Object.fromEntries(Object.entries(this.addresses).map(([each, address]) => [names(each), address]));
    const container = await Container.start({
      name,
      bed: this.#name,
      directory: join(this.#directory, name),
      image: this.#images[stage],
      command,
      env,
      volumes,
      isRestricted,
      hosts,
    });
    this.#containers.set(name, container);
    return container;
  }

  /** Waits for a successful answer at a path, as the deployment's probes do. */
  async untilHealthy(name: string, path = "/health"): Promise<void> {
    await eventually(async () => (await this.#ask(name, path)) === 200, `${name} does not answer its health check`);
  }

  /** Waits for any answer. */
  async untilAnswering(name: string): Promise<void> {
    await eventually(async () => (await this.#ask(name, "/")) !== undefined, `${name} does not answer`);
  }

  async #ask(name: string, path: string): Promise<number | undefined> {
    const container = this.container(name);
    if (container.hasEnded) throw new Error(`${name} has ended:\n${container.log.slice(-SHOWN_LINES).join("\n")}`);
    const response = await fetch(this.urlOf(name) + path).catch(() => undefined);
    await response?.body?.cancel();
    return response?.status;
  }

  /** Prints the containers' logs if the current test fails. */
  printLogsOnFailure(): void {
    onTestFailed(() => {
      for (const [name, { log }] of this.#containers) console.error([name, ...log.slice(-SHOWN_LINES)].join("\n  "));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await removeBed(this.#name);
  }
}
