import { execFile } from "node:child_process";
import { randomBytes, randomInt } from "node:crypto";
import { promisify } from "node:util";

const run = promisify(execFile);
/** A root shell without login has no sbin on its PATH. */
const env = { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin` };
const ATTEMPTS = 20;

/** A network bridge of the host with its own subnet; its creator removes it. */
export interface Bridge {
  readonly name: string;
  readonly address: string;
}

export async function makeBridge(): Promise<Bridge> {
  const name = `sp${randomBytes(4).toString("hex")}`;
  const address = `10.213.${await freeSubnet()}.1`;
  await ip("link", "add", name, "type", "bridge");
  try {
    await ip("address", "add", `${address}/24`, "dev", name);
    await ip("link", "set", name, "up");
  } catch (error) {
    await removeBridge(name);
    throw error;
  }
  return { name, address };
}

/** Ignores a missing bridge. */
export async function removeBridge(name: string): Promise<void> {
  await ip("link", "delete", name).catch(async (error: unknown) => {
    if ((await ip("-oneline", "link")).includes(` ${name}:`)) throw error;
  });
}

async function freeSubnet(): Promise<number> {
  const taken = await ip("-oneline", "-4", "address");
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const subnet = randomInt(1, 255);
    if (!taken.includes(` 10.213.${subnet}.`)) return subnet;
  }
  throw new Error("no subnet of 10.213.0.0/16 is free");
}

async function ip(...args: readonly string[]): Promise<string> {
  return (await run("ip", args, { env })).stdout;
}
