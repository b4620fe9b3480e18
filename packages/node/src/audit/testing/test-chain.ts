import { Keyring } from "../../auth/keyring.ts";
import { AuditChain } from "../audit-chain.ts";

/** A chain under a fixed secret. */
export function testChain(secret = "a secret of the tests"): AuditChain {
  return new AuditChain(new Keyring({ secrets: [secret], salt: "node" }));
}
