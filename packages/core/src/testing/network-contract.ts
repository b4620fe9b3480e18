import { createSandboxId } from "@sandpiper/protocol";
import { Sandbox } from "../sandbox/sandbox.ts";
import { eventually, textOf } from "./contract-sandbox.ts";
import { ECHO_PORT, GREETER_PORT, OutsideWorld, REFUSED_PORT } from "./outside-world.ts";
import type { CheckpointContext, ContractContext } from "./provider-contract.ts";

const bash = (script: string) => ["bash", "-c", script];
const connect = (host: string, port: number) => `exec 3<>/dev/tcp/${host}/${port}`;
/** Sends a line to the echo service and prints what returns. */
const echo = (host: string, text: string) =>
  bash(`${connect(host, ECHO_PORT)} && echo ${text} >&3 && read -r line <&3 && echo "$line"`);

/** The network of sandboxes whose connections reach the agent. The programs use bash, which can connect. */
export function describeNetwork(context: ContractContext): void {
  const { capabilities, framework, provider, config, network } = context;
  const { describe, it, expect, beforeAll, afterAll } = framework;
  if (capabilities.network !== "redirected" || network !== undefined) {
    const why = network?.skipped ?? "this provider gives commands the host's network";
    it.skip(`announces connections out of a sandbox (skipped: ${why})`, async () => {});
    return;
  }

  describe("network", () => {
    let sandbox: Sandbox;
    let world: OutsideWorld;
    beforeAll(async () => {
      sandbox = await Sandbox.create(provider(), { ...config });
    });
    afterAll(async () => {
      await sandbox.destroy();
    });

    it("refuses connections and queries at once while this program does not serve them", async () => {
      const { exitCode, stderr } = await sandbox.exec(bash(`${connect("192.0.2.1", ECHO_PORT)} && read -r line <&3`), {
        timeoutMs: 20_000,
      });
      expect(exitCode, stderr).toBe(1);
      expect((await sandbox.exec(echo("some.example", "x"), { timeoutMs: 20_000 })).exitCode).toBe(1);
      world = new OutsideWorld();
      expect((await sandbox.network(world)).isRedirected).toBe(true);
    });

    it("announces a connection by name and process, and carries bytes in both directions", async () => {
      const { stdout, stderr } = await sandbox.exec(echo("Echo.example", "hello"));
      expect(stdout, stderr).toBe("hello\n");
      expect(world.names).toContain("echo.example");
      expect(world.flows.at(-1)).toMatchObject({ name: "echo.example", port: ECHO_PORT, program: "bash" });
      expect(world.flows.at(-1)?.address.startsWith("198.18.")).toBe(true);
    });

    it("announces a connection by address without a name", async () => {
      expect((await sandbox.exec(echo("192.0.2.1", "literally"))).stdout).toBe("literally\n");
      expect(world.flows.at(-1)).toMatchObject({ name: null, address: "192.0.2.1" });
    });

    it("resets a refused connection, and reports a name that does not exist", async () => {
      const refused = await sandbox.exec(bash(`${connect("192.0.2.1", REFUSED_PORT)} && read -r line <&3`));
      expect(refused.stderr).toContain("reset");
      expect((await sandbox.exec(echo("nowhere.example", "x"))).exitCode).toBe(1);
      expect(world.names).toContain("nowhere.example");
    });

    it("carries a host that speaks first and ends its direction first", async () => {
      const script = `${connect("greeter.example", GREETER_PORT)}; cat <&3; echo goodbye >&3`;
      expect((await sandbox.exec(bash(script))).stdout).toBe("welcome\n");
      await eventually(async () => world.heard === "goodbye\n");
    });

    // Machines may be emulated, which is slow.
    const count = capabilities.isolation === "vm" ? 50 : 1000;
    it(`carries ${count} connections in a row`, async () => {
      const one = `${connect("echo.example", ECHO_PORT)}; echo $i >&3; read -r line <&3; [ "$line" = $i ] || exit 1; exec 3>&-`;
      const { exitCode, stderr } = await sandbox.exec(bash(`for i in $(seq ${count}); do ${one}; done`));
      expect(exitCode, stderr).toBe(0);
    });

    it("lists the ports on which programs listen, and reports those that open", async () => {
      expect(await sandbox.ports()).toEqual([]);
      if (!sandbox.languages.includes("python")) return;
      await using events = await sandbox.watchPorts();
      const code = 'import socket\nlistener = socket.create_server(("0.0.0.0", 8080))\nlistener.accept()';
      const server = await sandbox.start(["python3", "-c", code]);
      const expected = { port: 8080, address: "0.0.0.0", pid: server.pid, program: "python3" };
      expect((await events.next()).value).toEqual({ kind: "opened", ...expected });
      expect(await sandbox.ports()).toEqual([expected]);
      await server.kill();
      expect((await events.next()).value).toEqual({ kind: "closed", ...expected });
    });
  });
}

/** What becomes of connections when a sandbox is saved. Part of the contract of checkpoints that keep memory. */
export function describeSavedConnections({ framework, provider, config, ...context }: CheckpointContext): void {
  if (context.capabilities.network !== "redirected" || context.network !== undefined) return;
  const { it, expect } = framework;
  const { makeDirectory, restore } = context;
  /** Connects, waits for a line of input, then tries the connection. */
  const waiter = bash(
    `${connect("echo.example", ECHO_PORT)}; echo open; read -r go; echo still >&3; read -r line <&3; echo "got $line."`,
  );

  it("keeps connections through a checkpoint that leaves the sandbox running; in a copy they end at once", async () => {
    const directory = await makeDirectory();
    await using sandbox = await Sandbox.create(provider(), { ...config });
    const world = new OutsideWorld();
    await sandbox.network(world);
    const process = await sandbox.start(waiter, { stdin: true });
    await eventually(async () => world.flows.length > 0);
    await sandbox.checkpoint(directory, { keepsRunning: true });
    await using fork = await restore(directory, createSandboxId(), sandbox);
    const elsewhere = new OutsideWorld();
    await fork.network(elsewhere);
    for (const [side, answer] of [
      [sandbox, "open\ngot still.\n"],
      [fork, "open\ngot .\n"],
    ] as const) {
      const attached = await side.attach(process.id);
      await attached.write("go\n");
      expect(await textOf(attached.stdout)).toBe(answer);
    }
    // The name has the same address in both.
    expect((await fork.exec(echo("echo.example", "again"))).stdout).toBe("again\n");
    expect(elsewhere.flows.at(-1)).toMatchObject({ name: "echo.example", address: world.flows[0]?.address });
  });

  it("ends connections of a sandbox that is stopped, also for a program that only reads", async () => {
    const directory = await makeDirectory();
    const sandbox = await Sandbox.create(provider(), { ...config });
    const world = new OutsideWorld();
    await sandbox.network(world);
    const process = await sandbox.start(bash(`${connect("echo.example", ECHO_PORT)}; read -r line <&3; echo ended`));
    await eventually(async () => world.flows.length > 0);
    await sandbox.checkpoint(directory, { keepsRunning: false });
    await sandbox.destroy();
    await using restored = await restore(directory, sandbox.id, sandbox);
    expect(await textOf((await restored.attach(process.id)).stdout)).toBe("ended\n");
  });
}
