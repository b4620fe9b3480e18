import { SandboxError } from "@sandpiper/core";
import { checkConditions } from "../store/check-conditions.ts";
import { openStore } from "../store/open-store.ts";
import type { Check } from "./check.ts";

/** Writes, replaces and deletes a temporary object in the store; no check without one. */
export async function checkStore(url = process.env["SANDPIPER_STORE"]): Promise<readonly Check[]> {
  if (url === undefined || url === "") return [];
  const name = "store";
  try {
    const store = openStore(url);
    await checkConditions(store);
    return [{ name, status: "ok", detail: `${store.label}, conditional writes work` }];
  } catch (thrown) {
    const { message, hint } = SandboxError.from(thrown);
    return [{ name, status: "warning", detail: message, ...(hint === undefined ? {} : { hint }) }];
  }
}
