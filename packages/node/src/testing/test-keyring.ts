import { Keyring } from "../auth/keyring.ts";
import { TenantChunks } from "../store/tenant-chunks.ts";

export const testKeyring = new Keyring({ secrets: ["a secret of the tests"], salt: "the tests" });
export const testTenant = new TenantChunks(testKeyring, "t");
