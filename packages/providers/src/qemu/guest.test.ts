import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { shared } from "../host/testing/shared.ts";
import { findQemuHost, findQemuState } from "./host.ts";
import { createQemuFixture } from "./testing/fixture.ts";

const fixture = await shared(createQemuFixture());
const sandbox = await fixture.create();

async function templateAgeMs(): Promise<number> {
  const templates = join(fixture.stateDirectory, "qemu/templates");
  const names = (await readdir(templates)).filter((name) => !name.startsWith("blank-"));
  const made = await Promise.all(names.map(async (name) => (await stat(join(templates, name, "state"))).mtimeMs));
  return Date.now() - Math.max(...made);
}

async function output(command: string, machine = sandbox): Promise<string> {
  return (await machine.exec(command)).stdout.trim();
}

it("gives programs in a machine the usual Linux environment", async () => {
  expect(await output("id -un")).toBe("user");
  expect(await output("ls /")).not.toContain("lost+found");
  expect(await output("ls -d /dev/fd /dev/stdin /dev/shm /dev/pts/ptmx /run/lock | wc -l")).toBe("5");
  expect(await output("ip -o addr show lo")).toContain("127.0.0.1/8");
  expect(await output("cat /proc/1/comm")).toBe("init");
});

it("runs translated programs at fixed addresses without fast byte copies, and only those", async () => {
  const { accelerator } = await findQemuHost(findQemuState(fixture.stateDirectory));
  const library = () => output("grep -m 1 libc.so /proc/self/maps | cut -d - -f 1");
  const addresses = new Set([await library(), await library(), await library()]);
  for (const address of addresses) expect(address).toMatch(/^[0-9a-f]{8,}$/);
  const features = (await output("grep -m 1 ^flags /proc/cpuinfo")).split(" ");
  expect(features).toContain("lm");
  if (accelerator === "tcg") {
    expect(addresses.size).toBe(1);
    expect(features).not.toContain("erms");
  } else {
    expect(addresses.size).toBeGreaterThan(1);
  }
});

it("reports a process that was killed for lack of memory", async () => {
  expect(await sandbox.exec(["tail", "/dev/zero"])).toMatchObject({ outOfMemory: true });
  expect((await sandbox.exec("kill -9 $$")).outOfMemory).toBe(false);
});

it("sets the clock of a cloned machine to within a fraction of a second", async () => {
  // The template must be older than the error that the test looks for.
  await expect.poll(templateAgeMs).toBeGreaterThan(2000);
  await using copy = await fixture.create();
  const isRight = async () => {
    const beforeS = Date.now() / 1000;
    const insideS = Number(await output("date +%s.%N", copy));
    return insideS > beforeS - 0.2 && insideS < Date.now() / 1000 + 0.2;
  };
  await expect.poll(isRight).toBe(true);
});

it("redirects the network of every machine to its agent, which refuses what nobody serves", async () => {
  await using copy = await fixture.create();
  for (const machine of [sandbox, copy]) {
    expect(await output("cat /etc/resolv.conf; ip route", machine)).toMatch(
      /^nameserver 10\.0\.2\.3\ndefault via 10\.0\.2\.1 dev lo/,
    );
    const dial = (kind: string) => `exec 3<>/dev/${kind}/192.0.2.1/443; echo x >&3; timeout 20 cat <&3`;
    expect((await machine.exec(["bash", "-c", dial("udp")])).stderr).toContain("Connection refused");
    expect((await machine.exec(["bash", "-c", dial("tcp")])).stderr).toMatch(/refused|reset/);
  }
});
