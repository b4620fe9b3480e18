import { SandboxError } from "@sandpiper/protocol";
import { FakeClock } from "@sandpiper/protocol/testing";
import { WarmPool, type WarmPoolOptions } from "../pool/warm-pool.ts";

export interface YardKey {
  readonly image: string;
  readonly memoryMib: number;
}

export class YardMember {
  readonly id: number;
  readonly key: YardKey;
  isAlive = true;
  isSilent = false;
  isDiscarded = false;

  constructor(id: number, key: YardKey) {
    this.id = id;
    this.key = key;
  }
}

interface YardBoot {
  readonly key: YardKey;
  readonly signal: AbortSignal;
  readonly finish: () => YardMember;
  readonly fail: (thrown?: unknown) => void;
}

export const alpine: YardKey = { image: "alpine", memoryMib: 256 };

/** A pool whose instances boot, die and fail on the test's command. */
export class BootYard implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly members: YardMember[] = [];
  readonly errors: SandboxError[] = [];
  /** Boots in progress, oldest first. */
  readonly boots: YardBoot[] = [];
  readonly pool: WarmPool<YardKey, YardMember>;
  started = 0;
  /** Whether an aborted boot stops, or continues to its end. */
  obeysAbort = true;
  discardError: unknown;

  constructor(options: Partial<WarmPoolOptions<YardKey, YardMember>> = {}) {
    this.pool = new WarmPool<YardKey, YardMember>({
      keyOf: ({ image, memoryMib }) => `${image}/${memoryMib}`,
      boot: (key, signal) => this.#boot(key, signal),
      discard: async (member) => {
        member.isDiscarded = true;
        if (this.discardError !== undefined) throw this.discardError;
      },
      isHealthy: (member) => (member.isSilent ? new Promise(() => {}) : Promise.resolve(member.isAlive)),
      clock: this.clock,
      maxBoots: 4,
      maxAgeMs: 3_600_000,
      sweepIntervalMs: 10_000,
      backOff: { firstMs: 1000, mostMs: 60_000 },
      onError: (error) => this.errors.push(error),
      ...options,
    });
  }

  /** Completes the oldest boot, and lets its consequences settle. */
  async finish(): Promise<YardMember> {
    const member = this.#oldest().finish();
    await this.clock.advance(0);
    return member;
  }

  async fail(): Promise<void> {
    this.#oldest().fail();
    await this.clock.advance(0);
  }

  /** Sets the target, and lets boots start or end. */
  async setTarget(key: YardKey, target: number): Promise<void> {
    this.pool.setTarget(key, target);
    await this.clock.advance(0);
  }

  /** Sets the target and completes boots until it is reached. */
  async fill(key: YardKey, target: number): Promise<readonly YardMember[]> {
    await this.setTarget(key, target);
    const filled: YardMember[] = [];
    while (this.boots.length > 0) filled.push(await this.finish());
    return filled;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const boot of this.boots) boot.fail();
    await this.pool.close();
  }

  #oldest(): YardBoot {
    const [boot] = this.boots;
    if (boot === undefined) throw new Error("no boot is in progress");
    return boot;
  }

  #boot(key: YardKey, signal: AbortSignal): Promise<YardMember> {
    this.started++;
    return new Promise((resolve, reject) => {
      const leave = () => this.boots.splice(this.boots.indexOf(boot), 1);
      const boot: YardBoot = {
        key,
        signal,
        finish: () => {
          leave();
          const member = new YardMember(this.members.length, key);
          this.members.push(member);
          resolve(member);
          return member;
        },
        fail: (thrown = bootFailed()) => {
          leave();
          reject(thrown);
        },
      };
      this.boots.push(boot);
      signal.addEventListener("abort", () => this.obeysAbort && this.boots.includes(boot) && boot.fail(signal.reason));
    });
  }
}

function bootFailed(): SandboxError {
  return new SandboxError("boot_failed", { message: "the test failed this boot" });
}
