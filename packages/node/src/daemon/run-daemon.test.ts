import { EventEmitter } from "node:events";
import { SandboxError } from "@sandpiper/core";
import { createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import type { NodeConfig } from "../config/node-config.ts";
import { runDaemon, type StartNode } from "./run-daemon.ts";

/** Runs the daemon with a fake node. */
function setUp(options: { isTerminal?: boolean; argv?: string[]; start?: StartNode } = {}) {
  const signals = new EventEmitter();
  const seen = {
    out: "",
    err: "",
    exits: [] as number[],
    isStopped: false,
    config: undefined as NodeConfig | undefined,
  };
  const started = Promise.withResolvers<void>();
  const start: StartNode = async (config) => {
    seen.config = config;
    setImmediate(() => started.resolve());
    return {
      url: "http://127.0.0.1:4747",
      apiKeyFile: "/state/api-key",
      reconciled: {
        adopted: [createSandboxId(), createSandboxId()],
        rebuilt: [],
        lost: [],
        setBack: [],
        removed: [createSandboxId()],
        failed: [],
        unreachable: [],
      },
      engines: [
        { provider: "docker", status: { available: false, reason: "no engine answers", hint: "start Docker" } },
      ],
      async stop() {
        seen.isStopped = true;
      },
    };
  };
  const writer = (name: "out" | "err") => (text: string) => {
    seen[name] += text;
  };
  const exitCode = runDaemon({
    start: options.start ?? start,
    argv: options.argv ?? [],
    env: { SANDPIPER_HOME: "/nowhere/sandpiper-home" },
    signals,
    exit: (code) => void seen.exits.push(code),
    stdout: { isTTY: options.isTerminal ?? false, write: writer("out") },
    stderr: { write: writer("err") },
  });
  return { signals, seen, started: started.promise, exitCode };
}

describe("the daemon", () => {
  it("logs one line of JSON when it is ready, stops on a signal and exits with 0", async () => {
    const { signals, seen, started, exitCode } = setUp();
    await started;
    const lines = seen.out.trimEnd().split("\n");
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      msg: "ready",
      url: "http://127.0.0.1:4747",
      apiKeyFile: "/state/api-key",
      adopted: 2,
      removed: 1,
      docker: "does not work: no engine answers; start Docker",
    });
    signals.emit("SIGTERM", "SIGTERM");
    expect(await exitCode).toBe(0);
    expect(seen.isStopped).toBe(true);
    expect(seen.err).toBe("");
    expect(signals.listenerCount("SIGTERM")).toBe(0);
  });

  it("shows its URL, how to get the key, and what it found at the start on a terminal", async () => {
    const { signals, seen, started, exitCode } = setUp({ isTerminal: true });
    await started;
    expect(seen.out).toContain("ready: http://127.0.0.1:4747");
    expect(seen.out).toContain("cat /state/api-key");
    expect(seen.out).toContain("  docker does not work: no engine answers; start Docker\n");
    expect(seen.out).toContain("adopted 2 sandboxes, removed 1 sandbox without a record");
    signals.emit("SIGINT", "SIGINT");
    expect(await exitCode).toBe(0);
  });

  it("says in a cluster which keys work, and that other nodes resume its sandboxes", async () => {
    const argv = ["--store=file:///shared"];
    const { signals, seen, started, exitCode } = setUp({ isTerminal: true, argv });
    await started;
    expect(seen.out).not.toContain("cat /state/api-key");
    expect(seen.out).toContain("key    use any key of the cluster");
    expect(seen.out).toContain('"Authorization: Bearer $SANDPIPER_API_KEY" http://127.0.0.1:4747/v1/sandboxes');
    signals.emit("SIGINT", "SIGINT");
    expect(await exitCode).toBe(0);
    expect(seen.out).toContain("saving sandboxes for other nodes");
  });

  it("stops when a signal arrives while it starts", async () => {
    const { signals, seen, exitCode } = setUp();
    signals.emit("SIGTERM", "SIGTERM");
    expect(await exitCode).toBe(0);
    expect(seen.isStopped).toBe(true);
  });

  it("exits with 2 and names the wrong setting when the configuration is invalid", async () => {
    const { seen, exitCode } = setUp({ argv: ["--port", "abc"] });
    expect(await exitCode).toBe(2);
    expect(seen.err).toContain('sandpiper: invalid configuration: port "abc" (from --port)');
    expect(seen.config).toBeUndefined();
  });

  it("exits with 1 and prints the error with its hint when it cannot start", async () => {
    const start: StartNode = async () => {
      throw SandboxError.fromFields({
        code: "failed_precondition",
        reason: "port_in_use",
        message: "port 1 is in use",
        hint: "try 2",
      });
    };
    const { seen, exitCode } = setUp({ start });
    expect(await exitCode).toBe(1);
    expect(seen.err).toBe("sandpiper: port 1 is in use\n  try 2\n");
  });

  it("refuses to listen beyond loopback without TLS, before it starts anything", async () => {
    const { seen, exitCode } = setUp({ argv: ["--host=0.0.0.0"] });
    expect(await exitCode).toBe(1);
    expect(seen.err).toContain("--allow-insecure");
    expect(seen.config).toBeUndefined();
  });

  it("lists every option with --help", async () => {
    const { seen, exitCode } = setUp({ argv: ["--help"] });
    expect(await exitCode).toBe(0);
    expect(seen.out).toContain("--tls-cert-file TEXT");
    expect(seen.out).toContain("--allow-insecure ");
  });
});
