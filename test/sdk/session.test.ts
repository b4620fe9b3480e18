import { Session } from "@sandpiper/sdk";
import { describe, expect, it, onTestFinished } from "vitest";
import { countTo, numbersTo } from "../node/numbered-output.ts";
import { CuttingProxy } from "./cutting-proxy.ts";
import { useNode } from "./sdk-node.ts";
import { StrandingProxy } from "./stranding-proxy.ts";

const node = await useNode();
const direct = { url: node.url, apiKey: node.apiKey };

async function create(options: Parameters<typeof Session.create>[0] = {}): Promise<Session> {
  const session = await Session.create({ ...direct, memoryMib: 128, ...options });
  onTestFinished(() => session.close());
  return session;
}

describe("a session on gVisor", () => {
  it("creates a sandbox, and runs one piece of code after another in it", async () => {
    const session = await create();
    expect([session.status, session.isAttached]).toEqual(["SANDBOX_RUNNING", true]);
    const result = await session.run("python", "print('hello')");
    expect(result).toEqual({ stdout: "hello\n", stderr: "", exitCode: 0, message: undefined, truncated: false });
    expect(await session.run("bash", "echo out; echo err >&2; exit 3")).toMatchObject({
      stdout: "out\n",
      stderr: "err\n",
      exitCode: 3,
    });
  });

  it("streams output while the code runs", async () => {
    const session = await create();
    const execution = session.start("bash", "echo first; read line < <(sleep 0.1; echo second); echo $line");
    expect(session.execution).toBe(execution);
    const texts: string[] = [];
    for await (const { text } of execution) texts.push(text);
    expect(texts).toEqual(["first\n", "second\n"]);
    expect(await execution.wait()).toEqual({ exitCode: 0, message: undefined });
    expect(session.execution).toBeUndefined();
  });

  it("refuses a second piece of code while one runs, and kills the one that runs on request", async () => {
    const session = await create();
    const execution = session.start("bash", "echo up; sleep 60");
    for await (const { text } of execution) {
      expect(text).toBe("up\n");
      break;
    }
    await expect(session.run("bash", "true")).rejects.toMatchObject({ reason: "execution_running" });
    await execution.kill();
    expect(await execution.wait()).toMatchObject({ exitCode: 137 });
    expect((await session.run("bash", "echo next")).stdout).toBe("next\n");
  });

  it("kills code whose caller cancels it, and runs the next piece when it has ended", async () => {
    const session = await create();
    const abort = new AbortController();
    const onStdout = () => abort.abort();
    const running = session.run("bash", "echo up; sleep 60", { signal: abort.signal, onStdout });
    await expect(running).rejects.toMatchObject({ code: "canceled" });
    expect((await session.run("bash", "pgrep -c sleep; true")).stdout).toBe("0\n");
  });

  it("fails with the reason of the node, and stays usable", async () => {
    const session = await create();
    await expect(session.run("klingon", "Qapla'")).rejects.toMatchObject({ reason: "unknown_language" });
    expect((await session.run("bash", "echo fine")).stdout).toBe("fine\n");
  });

  it("keeps whole characters that a program writes in halves, with the other stream in between", async () => {
    const session = await create();
    const code = `
import sys, time
for byte in "né€𝄞".encode():
    sys.stdout.buffer.write(bytes([byte])); sys.stdout.flush()
    sys.stderr.write("."); sys.stderr.flush()
    time.sleep(0.01)
`;
    expect(await session.run("python", code)).toMatchObject({ stdout: "né€𝄞", stderr: "..........".slice(0, 10) });
  });
});

describe("a session that leaves and returns", () => {
  it("attaches again without a handoff, finds its files, and the rest of the output of running code", async () => {
    const first = await create();
    await first.run("bash", "echo kept > ~/file");
    const execution = first.start("bash", countTo(60));
    let text = "";
    for await (const output of execution) {
      text += output.text;
      if (text.includes("5\n")) break;
    }
    const { id, token } = first;
    const resume = { execution: execution.id, next: execution.next };
    await first.close();
    await expect(execution.wait()).rejects.toMatchObject({ reason: "client_closed" });

    const second = await Session.attach(id, { ...direct, token, resume });
    onTestFinished(() => second.close());
    for await (const output of second.execution ?? []) text += output.text;
    expect(text).toBe(numbersTo(60));
    expect((await second.run("bash", "cat ~/file")).stdout).toBe("kept\n");
  });

  it("hands code of an earlier client to a listener", async () => {
    const first = await create();
    const { id: execution } = first.start("bash", "read line < <(sleep 0.5; echo late); echo $line");
    await expect.poll(() => first.execution?.next).toBe("0");
    const { id, token } = first;
    const started = new Promise<void>((resolve) => {
      first.on("status", ({ status }) => status === "SANDBOX_EXECUTION_RUNNING" && resolve());
    });
    await started;
    await first.close();
    const second = await Session.attach(id, { ...direct, token });
    onTestFinished(() => second.close());
    const found = await new Promise<NonNullable<typeof second.execution>>((resolve) => {
      second.on("execution", resolve);
      if (second.execution !== undefined) resolve(second.execution);
    });
    expect(found.id).toBe(execution);
    let text = "";
    for await (const output of found) text += output.text;
    expect([text, (await found.wait()).exitCode]).toEqual(["late\n", 0]);
  });

  it("is refused while another client is attached, waits for it on request, and takes over on request", async () => {
    const first = await create();
    const { id, token } = first;
    await expect(Session.attach(id, direct)).rejects.toMatchObject({ reason: "sandbox_in_use" });
    const waiting = Session.attach(id, { ...direct, waitMs: 60_000 });
    await first.close();
    const second = await waiting;
    const third = await Session.attach(id, { ...direct, token, takeover: true });
    onTestFinished(() => third.close());
    expect(await second.closed).toMatchObject({ reason: "session_taken_over" });
    await expect(second.run("bash", "true")).rejects.toMatchObject({ reason: "session_taken_over" });
    expect((await third.run("bash", "echo mine")).stdout).toBe("mine\n");
  });

  it("fails when the sandbox does not exist, and when the credential is wrong", async () => {
    const missing = "00000000-0000-4000-8000-000000000000";
    await expect(Session.attach(missing, direct)).rejects.toMatchObject({ reason: "no_such_sandbox" });
    const wrong = { url: node.url, apiKey: "spk_wrong" };
    await expect(Session.create(wrong)).rejects.toMatchObject({ code: "unauthenticated" });
  });

  it("ends when the sandbox is destroyed", async () => {
    const session = await create();
    const other = await node.client.sandboxes.connect(session.id);
    const running = session.run("bash", "sleep 60");
    running.catch(() => {});
    await other.destroy();
    await expect(running).rejects.toMatchObject({ reason: "sandbox_destroyed" });
    expect(await session.closed).toMatchObject({ reason: "sandbox_destroyed" });
  });
});

describe("a session whose network drops", () => {
  it("receives every line once, although all connections are cut every 200 ms", async () => {
    await using proxy = await CuttingProxy.start(node.url, { cutEveryMs: 200, bytesPerMs: 2000 });
    await using session = await attachThrough(proxy);
    const { stdout, truncated } = await session.run("bash", "seq 1 200000");
    expect([stdout === numbersTo(200_000), truncated]).toEqual([true, false]);
    expect(proxy.cuts).toBeGreaterThanOrEqual(2);
  });

  it("runs each piece of code exactly once, although all connections are cut every 100 ms", async () => {
    await using proxy = await CuttingProxy.start(node.url, { cutEveryMs: 100, bytesPerMs: 2000 });
    await using session = await attachThrough(proxy);
    for (let number = 0; number < 30; number++) {
      const { stdout } = await session.run("bash", `echo ${number} >> ~/ran; echo ${number}`);
      expect(stdout).toBe(`${number}\n`);
    }
    const ran = (await session.run("bash", "cat ~/ran")).stdout;
    expect(ran).toBe(Array.from({ length: 30 }, (_, number) => `${number}\n`).join(""));
    expect(proxy.cuts).toBeGreaterThanOrEqual(2);
  });

  it("takes over with its token when the node still holds the dead connection, in the middle of output", async () => {
    await using proxy = await StrandingProxy.start(node.url);
    await using session = await create({ url: proxy.url });
    let strands = 0;
    let text = "";
    const execution = session.start("bash", countTo(150));
    for await (const output of execution) {
      text += output.text;
      if (text.split("\n").length > (strands + 1) * 30 && strands < 4) strands += Math.sign(proxy.strand());
    }
    expect([strands, text]).toEqual([4, numbersTo(150)]);
  });

  it("waits for the dead connection to end when it has no token", async () => {
    const { id } = await node.client.sandboxes.create({ memoryMib: 128 });
    await using proxy = await StrandingProxy.start(node.url);
    await using session = await Session.attach(id, { ...direct, url: proxy.url });
    const inUse = new Promise<void>((resolve) => {
      session.on("status", ({ status }) => status === "SANDBOX_IN_USE" && resolve());
    });
    proxy.strand();
    const running = session.run("bash", "echo waited");
    await inUse;
    proxy.reveal();
    expect((await running).stdout).toBe("waited\n");
  });
});

/** A session of a new sandbox. A connection that is cut soon would not survive the creation. */
async function attachThrough(proxy: { readonly url: string }): Promise<Session> {
  const { id, token } = await node.client.sandboxes.create({ memoryMib: 128 });
  return await Session.attach(id, { ...direct, url: proxy.url, token });
}
