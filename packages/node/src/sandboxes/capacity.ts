import { SandboxError } from "@sandpiper/core";
import type { Usage } from "../records/sandbox-record.ts";

const none: Usage = { sandboxes: 0, memoryMib: 0, vcpuCount: 0 };

/** What creations under way will take: they count before their records exist, so that many at once pass no limit. */
export class Reservations {
  readonly #byKey = new Map<string, Usage>();
  #count = 0;

  get count(): number {
    return this.#count;
  }

  of(keyId: string): Usage {
    return this.#byKey.get(keyId) ?? none;
  }

  reserve(keyId: string, wanted: Usage): Disposable {
    this.#add(keyId, wanted, 1);
    let isReserved = true;
    return {
      [Symbol.dispose]: () => {
        if (isReserved) this.#add(keyId, wanted, -1);
        isReserved = false;
      },
    };
  }

  #add(keyId: string, { sandboxes, memoryMib, vcpuCount }: Usage, sign: 1 | -1): void {
    const now = this.of(keyId);
    this.#count += sign * sandboxes;
    const next = sum(now, {
      sandboxes: sign * sandboxes,
      memoryMib: sign * memoryMib,
      vcpuCount: sign * vcpuCount,
    });
    if (next.sandboxes === 0) this.#byKey.delete(keyId);
    else this.#byKey.set(keyId, next);
  }
}

export function sum(a: Usage, b: Usage): Usage {
  return {
    sandboxes: a.sandboxes + b.sandboxes,
    memoryMib: a.memoryMib + b.memoryMib,
    vcpuCount: a.vcpuCount + b.vcpuCount,
  };
}

export function limitReached(maxSandboxes: number): SandboxError {
  return new SandboxError("resource_exhausted", {
    reason: "sandbox_limit",
    message: `no sandbox was created: ${maxSandboxes} exist or are being created, and no more are allowed`,
    hint: "destroy one, or raise maxSandboxes of the node",
    details: { maxSandboxes },
  });
}
