import { join } from "node:path";
import { type Clock, type CreateInstanceOptions, type PullProgress, SandboxError } from "@sandpiper/core";
import { cacheDirectory } from "../host/cache-directory.ts";
import { guestImage } from "./guest-image.ts";
import type { GuestImage } from "./image-build.ts";
import { findDefaultRoot } from "./image-default.ts";
import { MACHINE_IMAGE } from "./provision.ts";

/** The delay until new sandboxes see a change of a directory, because checking all its files takes a moment. */
const CHECK_INTERVAL_MS = 60_000;

/** Finds the image for a sandbox's `rootfs`. */
export class Images {
  readonly #stateDirectory: string;
  readonly #clock: Clock;
  readonly #known = new Map<string, { readonly image: Promise<GuestImage>; readonly checkedAtMs: number }>();

  constructor(stateDirectory: string, clock: Clock) {
    this.#stateDirectory = stateDirectory;
    this.#clock = clock;
  }

  /** Concurrent callers share one search; only the first receives its progress. */
  find(rootfs: string, { onProgress }: Pick<CreateInstanceOptions, "onProgress"> = {}): Promise<GuestImage> {
    const now = this.#clock.monotonicMs();
    const known = this.#known.get(rootfs);
    if (known !== undefined && now - known.checkedAtMs < CHECK_INTERVAL_MS) return known.image;
    const image = this.#look(rootfs, onProgress);
    this.#known.set(rootfs, { image, checkedAtMs: now });
    image.catch(() => this.#known.delete(rootfs));
    return image;
  }

  async #look(rootfs: string, onProgress: CreateInstanceOptions["onProgress"]): Promise<GuestImage> {
    const root = rootfs === "host" ? await findDefaultRoot() : rootfs;
    if (root === undefined) {
      throw new SandboxError("image_missing", {
        message: "no image for virtual machines found",
        hint: "run `npm run setup image` in Sandpiper's directory, which builds one from Debian's packages",
      });
    }
    const options = { imagesDirectory: join(cacheDirectory(), "images"), stateDirectory: this.#stateDirectory };
    if (rootfs !== "host") return await guestImage(root, { ...options, onProgress });
    const tell = onProgress && ((progress: PullProgress) => onProgress({ ...progress, image: MACHINE_IMAGE }));
    return await guestImage(root, { ...options, isSealed: true, onProgress: tell });
  }
}
