import type { Sandbox } from "@sandpiper/sdk";
import { afterAll } from "vitest";
import { NetworkBed, type NetworkBedOptions } from "./world/network-bed.ts";

/** A bed for the tests of one file; its sandboxes and networks end with the file. */
export async function useNetworkBed(options: NetworkBedOptions = {}): Promise<NetworkBed> {
  const bed = await NetworkBed.start(options);
  afterAll(() => bed[Symbol.asyncDispose](), 60_000);
  return bed;
}

/** Makes a sandbox trust the authority of the tests' sites, in the system's store and where Node.js looks. */
export async function trustAuthority(sandbox: Sandbox, { world }: NetworkBed): Promise<void> {
  await sandbox.files.write(AUTHORITY_FILE, world.authority);
  await sandbox.exec(["sh", "-c", `cat ${AUTHORITY_FILE} >> /etc/ssl/certs/ca-certificates.crt`], { user: "root" });
}

export const AUTHORITY_FILE = "/tmp/tests-authority.pem";
