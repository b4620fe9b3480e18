import type { Sandbox } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { guest, HeldConnection, installGuestProgram, startHolding } from "./guest-network.ts";
import { useNetworkBed } from "./shared-bed.ts";
import { ports } from "./world/addresses.ts";

const bed = await useNetworkBed({ nodes: 2 });
const client = bed.node.client();

async function create(): Promise<Sandbox> {
  const sandbox = await client.sandboxes.create({ network: { rules: [{ allow: "site.example" }] } });
  await installGuestProgram(sandbox);
  return sandbox;
}

/** Starts a server inside that answers each connection. */
async function listenInside(sandbox: Sandbox): Promise<void> {
  const script = [
    "import socket",
    'server = socket.create_server(("127.0.0.1", 9000))',
    'print("listening", flush=True)',
    'while True: server.accept()[0].sendall(b"still listening\\n")',
  ];
  const server = await sandbox.start(["python3", "-c", script.join("\n")]);
  for await (const { bytes } of server.output) if (new TextDecoder().decode(bytes).includes("listening")) break;
}

/** Whether a connection that the process kept before a restore has ended, as its next line shows. */
async function hasEnded(sandbox: Sandbox, { process }: HeldConnection): Promise<boolean> {
  const restored = new HeldConnection(await sandbox.attach(process.id));
  await restored.process.write("still there?\n");
  for (let line = await restored.next(); line !== "exited"; line = await restored.next()) {
    if (line === "still there?") return false;
    if (line.startsWith("ended")) return true;
  }
  return false;
}

const askInside = (sandbox: Sandbox) => guest(sandbox, "echo", "127.0.0.1", 9000, "");
const reachOutside = (sandbox: Sandbox) => guest(sandbox, "echo", "site.example", ports.echo, "hello");

describe("the network of a sandbox", { timeout: 120_000 }, () => {
  it("keeps open connections while a checkpoint saves the running sandbox", async () => {
    await using sandbox = await create();
    const held = await startHolding(sandbox, "hold", "site.example", ports.echo);
    expect(await held.say("before")).toBe("before");
    for (const number of [1, 2, 3]) {
      await sandbox.checkpoint();
      expect(await held.say(`after ${number}`)).toBe(`after ${number}`);
    }
  });

  it("works at once after a rollback: listeners and new connections live, old connections end", async () => {
    await using sandbox = await create();
    await listenInside(sandbox);
    const resolved = await guest(sandbox, "resolve", "site.example");
    const held = await startHolding(sandbox, "hold", "site.example", ports.echo);
    await sandbox.checkpoint({ name: "connected" });
    await sandbox.rollback("connected");
    expect(await reachOutside(sandbox)).toBe("hello");
    expect(await askInside(sandbox)).toBe("still listening\n");
    expect(await guest(sandbox, "resolve", "site.example")).toBe(resolved);
    expect(await hasEnded(sandbox, held)).toBe(true);
  });

  it("works at once in a fork, with the stand-in addresses of its origin", async () => {
    await using sandbox = await create();
    await listenInside(sandbox);
    const resolved = await guest(sandbox, "resolve", "site.example");
    const held = await startHolding(sandbox, "hold", "site.example", ports.echo);
    const [fork] = await sandbox.fork();
    if (fork === undefined) throw new Error("no fork");
    expect(await reachOutside(fork)).toBe("hello");
    expect(await askInside(fork)).toBe("still listening\n");
    expect(await guest(fork, "resolve", "site.example")).toBe(resolved);
    expect(await held.say("the origin's connection lives on")).toBe("the origin's connection lives on");
    expect(await hasEnded(fork, held)).toBe(true);
    await fork.destroy();
  });

  it("works at once after a handoff to another node, and old connections end", async () => {
    await using sandbox = await create();
    await listenInside(sandbox);
    const resolved = await guest(sandbox, "resolve", "site.example");
    const held = await startHolding(sandbox, "hold", "site.example", ports.echo);
    const silent = await startHolding(sandbox, "watch", "site.example", ports.echo);
    const [, second] = bed.nodes;
    if (second === undefined) throw new Error("no second node");
    const moved = await second.client(bed.node.apiKey).sandboxes.connect(sandbox.id);
    await moved.moveTo();
    expect(await reachOutside(moved)).toBe("hello");
    expect(await askInside(moved)).toBe("still listening\n");
    expect(await guest(moved, "resolve", "site.example")).toBe(resolved);
    expect(await guest(moved, "get", "other.example")).toMatch(/^failed/);
    expect(await hasEnded(moved, held)).toBe(true);
    // Its program only reads, so nothing but the end itself can wake it.
    await (await moved.attach(silent.process.id)).wait();
  });
});
