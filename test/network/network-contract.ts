import type { NetworkBody } from "@sandpiper/protocol";
import type { Sandbox } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { guest, installGuestProgram, startHolding } from "./guest-network.ts";
import { addresses, ports } from "./world/addresses.ts";
import type { NetworkBed } from "./world/network-bed.ts";

export interface NetworkContractOptions {
  readonly bed: NetworkBed;
  /** A sandbox that has Python. */
  create(network: NetworkBody): Promise<Sandbox>;
  /** Connections in a row. */
  readonly connections: number;
  readonly transferBytes: number;
  /** For a sandbox's start and a transfer on a slow machine. */
  readonly timeoutMs: number;
}

const siteRules = { rules: [{ allow: "site.example" }] } satisfies NetworkBody;

/** What every provider's sandboxes can do with a network, against real servers. */
export function describeNetwork(provider: string, options: NetworkContractOptions): void {
  const { bed, connections, transferBytes, timeoutMs } = options;
  const create = async (network: NetworkBody): Promise<Sandbox> => {
    const sandbox = await options.create(network);
    await installGuestProgram(sandbox);
    return sandbox;
  };

  describe(`the network of a sandbox on ${provider}`, { timeout: timeoutMs }, () => {
    it("reaches nothing without a policy, and opens and closes while the sandbox runs", async () => {
      await using sandbox = await create("none");
      expect(await guest(sandbox, "get", "site.example")).toMatch(/^failed/);
      expect(await guest(sandbox, "get", addresses.site)).toMatch(/^failed/);
      await bed.setNetwork(sandbox.id, "open");
      expect(await guest(sandbox, "get", "site.example")).toContain(`reached ${addresses.site} as site.example`);
      expect(await guest(sandbox, "get", addresses.other)).toContain(`reached ${addresses.other}`);
      await bed.setNetwork(sandbox.id, siteRules);
      expect(await guest(sandbox, "get", "site.example")).toContain("reached");
      expect(await guest(sandbox, "get", "other.example")).toMatch(/^failed/);
      await bed.setNetwork(sandbox.id, "none");
      expect(await guest(sandbox, "get", "site.example")).toMatch(/^failed/);
    });

    it("speaks protocols in which the client, the server, or both speak first, half-closed and upgraded", async () => {
      await using sandbox = await create(siteRules);
      expect(await guest(sandbox, "echo", "site.example", ports.echo, "hello")).toBe("hello");
      expect(await guest(sandbox, "greeting", "site.example", ports.greeting)).toBe(
        "220 site.example ready\r\nhello\n",
      );
      expect(await guest(sandbox, "count", "site.example", ports.counter, 100_000)).toBe("100000\n");
      expect(await guest(sandbox, "web_socket", "site.example", ports.http, "over a WebSocket")).toBe(
        "over a WebSocket\n",
      );
      expect(await guest(sandbox, "get_tls", "site.example")).toContain("as site.example");
    });

    it("resolves names with the node's resolver, to stand-in addresses", async () => {
      await using sandbox = await create("open");
      expect(await guest(sandbox, "resolve", "site.example")).toMatch(/^198\.1[89]\.\d+\.\d+\n$/);
      expect(await guest(sandbox, "get", "alias.example")).toContain(`reached ${addresses.site}`);
      expect(await guest(sandbox, "get", "dual.example")).toContain("reached");
      expect(await guest(sandbox, "get", "v6.example")).toContain(`reached ${addresses.siteV6}`);
      expect(await guest(sandbox, "get", "missing.example")).toMatch(/^failed/);
      expect(await guest(sandbox, "get", "broken.example")).toMatch(/^failed/);
    });

    it(`makes ${connections} connections in a row, and moves ${transferBytes} bytes each way`, async () => {
      await using sandbox = await create({ ...siteRules, limits: { maxConnectionsPerSecond: null } });
      expect(await guest(sandbox, "many", "site.example", ports.echo, connections)).toBe(`${connections}\n`);
      expect(await guest(sandbox, "receive", "site.example", ports.source, transferBytes)).toBe(`${transferBytes}\n`);
      expect(await guest(sandbox, "count", "site.example", ports.counter, transferBytes)).toBe(`${transferBytes}\n`);
    });

    it("cuts the connections that a changed policy no longer allows, and keeps the others", async () => {
      await using sandbox = await create("open");
      const kept = await startHolding(sandbox, "hold", "site.example", ports.echo);
      const cut = await startHolding(sandbox, "watch", "other.example", ports.echo);
      expect(await kept.say("before")).toBe("before");
      await bed.setNetwork(sandbox.id, siteRules);
      expect(await cut.next()).toMatch(/^ended/);
      expect(await kept.say("after")).toBe("after");
    });

    it("refuses private addresses and the metadata address, also with an open policy", async () => {
      await using sandbox = await create("open");
      expect(await guest(sandbox, "get", addresses.site)).toContain("reached");
      for (const address of [addresses.private10, addresses.metadata, "private.example", "alias-to-metadata.example"]) {
        expect(await guest(sandbox, "get", address)).toMatch(/^failed|^$/);
      }
      const { sightings } = await bed.world.report();
      const forbidden: readonly string[] = [addresses.private10, addresses.metadata];
      expect(sightings.filter(({ address }) => forbidden.includes(address))).toEqual([]);
    });
  });
}
