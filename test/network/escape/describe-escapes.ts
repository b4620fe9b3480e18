import { readFileSync } from "node:fs";
import type { NetworkBody } from "@sandpiper/protocol";
import type { Sandbox } from "@sandpiper/sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { guest, guestPython, installGuestProgram } from "../guest-network.ts";
import { addresses, forbiddenAddresses } from "../world/addresses.ts";
import type { NetworkBed } from "../world/network-bed.ts";
import { addressAttempts } from "./addresses.ts";
import type { Attempt } from "./attempt.ts";
import { HostServices } from "./host-services.ts";
import { nameAttempts } from "./names.ts";
import { socketAttempts } from "./sockets.ts";

export interface EscapesOptions {
  readonly bed: NetworkBed;
  /** A sandbox that has Python. */
  create(network: NetworkBody): Promise<Sandbox>;
  /** Attempts that do not fit a provider, by name, with the reason. */
  readonly except?: Readonly<Record<string, string>>;
}

const policies: Readonly<Record<NonNullable<Attempt["policy"]>, NetworkBody>> = {
  open: "open",
  rules: { rules: [{ allow: "site.example", ports: [80, 443] }] },
};
const all = [...addressAttempts, ...nameAttempts, ...socketAttempts];

/** Asks for 400 names as fast as it can. */
const TUNNEL = `
import threading
def ask(number):
    try: socket.getaddrinfo(f"{number:03}" + "x" * 40 + ".tunnel.example", 80)
    except OSError: pass
for start in range(0, 400, 50):
    threads = [threading.Thread(target=ask, args=(start + at,)) for at in range(50)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print("asked")`;
const SERVER = `
import socket
server = socket.create_server(("0.0.0.0", 9000))
print("listening", flush=True)
while True: server.accept()[0].sendall(b"reached the other sandbox")`;

/** Every attempt to leave a sandbox, against servers that would answer. */
export function describeEscapes(provider: string, options: EscapesOptions): void {
  const { bed, except = {} } = options;
  const attempts = all.filter(({ name }) => !Object.hasOwn(except, name));
  let host: HostServices;
  let sandboxes: Readonly<Record<NonNullable<Attempt["policy"]>, Sandbox>>;

  const create = async (network: NetworkBody): Promise<Sandbox> => {
    const sandbox = await options.create(network);
    await installGuestProgram(sandbox);
    return sandbox;
  };
  beforeAll(async () => {
    host = await HostServices.start(bed.namespaceOf(bed.node));
    sandboxes = { open: await create(policies.open), rules: await create(policies.rules) };
  }, 120_000);
  afterAll(() => host[Symbol.dispose]());

  /** The forbidden addresses that something reached. */
  async function reached(): Promise<string[]> {
    const { sightings } = await bed.world.report();
    return sightings.map(({ address }) => address).filter((address) => forbiddenAddresses.includes(address));
  }

  describe(`root in a sandbox on ${provider}`, () => {
    it("reaches what its policy allows, with the same program that fails below", async () => {
      expect(await guest(sandboxes.open, "get", "site.example")).toContain(`reached ${addresses.site}`);
      expect(await guest(sandboxes.open, "get", addresses.other)).toContain(`reached ${addresses.other}`);
      expect(await guest(sandboxes.open, "get_tls", "site.example")).toContain("as site.example");
      expect(await guest(sandboxes.rules, "get", "site.example")).toContain(`reached ${addresses.site}`);
      expect(await guest(sandboxes.rules, "get_tls", "site.example")).toContain("as site.example");
      expect(await guestPython(sandboxes.open, "print(os.getuid())", "root")).toBe("0\n");
    });

    it("is held by checks of the node alone: the node itself reaches every forbidden address and the host's services", async () => {
      for (const address of forbiddenAddresses) {
        const url = `http://${address.includes(":") ? `[${address}]` : address}/`;
        expect(await bed.node.runInside(["curl", "-sS", "-g", url])).toContain(`reached ${address}`);
      }
      expect(await bed.node.runInside(["curl", "-sS", "http://127.0.0.1:8099/"])).toContain("reached the host");
      expect([(await reached()).length, await host.visits()]).toEqual([forbiddenAddresses.length, 1]);
    });

    it.each(attempts.map((attempt) => [attempt.name, attempt] as const))(
      "gets nowhere with %s",
      async (_, { script, policy = "open", escaped = /reached/ }) => {
        const before = [await reached(), await host.visits()];
        const output = await guestPython(sandboxes[policy], script, "root");
        expect(output).not.toMatch(/SyntaxError|NameError|ImportError|ModuleNotFoundError/);
        expect(output).not.toMatch(escaped);
        expect([await reached(), await host.visits()]).toEqual(before);
      },
    );

    it("has at least forty attempts, each with its own name", () => {
      expect(attempts.length).toBeGreaterThanOrEqual(40);
      expect(new Set(attempts.map(({ name }) => name)).size).toBe(attempts.length);
    });

    it("has every attempt in SECURITY.md", () => {
      const text = readFileSync(new URL("../../../SECURITY.md", import.meta.url), "utf8").replaceAll(/\s+/g, " ");
      expect(all.filter(({ name }) => !text.includes(name)).map(({ name }) => name)).toEqual([]);
      expect(text).toContain(`tries ${all.length} ways out as root`);
    });

    it("sends no name that its policy denies to a resolver", async () => {
      const { queries } = await bed.world.report();
      const asked = Object.keys(queries).map((query) => query.split(" ")[0] ?? "");
      expect(asked).toContain("site.example");
      expect(asked.filter((name) => /tunnel|denied/.test(name))).toEqual([]);
    });

    it("cannot tunnel data through DNS faster than its limit", async () => {
      const sandbox = await create({ default: "allow", limits: { maxQueriesPerSecond: 10 } });
      expect(await guestPython(sandbox, TUNNEL, "root")).toContain("asked");
      const { queries } = await bed.world.report();
      const tunnelled = Object.keys(queries).filter((query) => query.includes("x.tunnel.example"));
      expect(tunnelled.length).toBeGreaterThan(0);
      expect(tunnelled.length).toBeLessThan(300);
    });

    it("does not reach another sandbox, which listens at the same address inside", async () => {
      const other = await create("open");
      const server = await other.start(["python3", "-c", SERVER]);
      for await (const { bytes } of server.output) if (new TextDecoder().decode(bytes).includes("listening")) break;
      const inside = await guestPython(other, 'print(net.connect("127.0.0.1", 9000).recv(100))');
      expect(inside).toContain("reached the other sandbox");
      for (const address of ["127.0.0.1", "10.0.2.2", "10.0.2.1", "198.18.0.1", "198.18.0.2"]) {
        const script = `try: print(net.connect("${address}", 9000).recv(100))\nexcept OSError as error: print(error)`;
        expect(await guestPython(sandboxes.open, script, "root")).not.toContain("reached");
      }
    });
  });
}
