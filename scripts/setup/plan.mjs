/**
 * Something that set-up needs and does not install itself.
 * @typedef {object} Problem
 * @property {string} missing
 * @property {string} remedy the exact command, or commands, to run
 */

/**
 * The findings of one step.
 * @typedef {object} Plan
 * @property {string} detail where the thing is, or will be
 * @property {readonly Problem[]} problems
 * @property {(() => Promise<void>) | undefined} [work] absent when there is nothing to do
 * @property {{ readonly name: string, readonly seconds: number } | undefined} [announcement] what the work makes, and how
 *   long that took on 2 cores; absent when the work is quick
 */

/**
 * The line that set-up prints before it starts: what it will do, and how long that takes.
 * @param {readonly Pick<Plan, "announcement">[]} plans
 * @returns {string | undefined} nothing when all of it is quick
 */
export function announce(plans) {
  const announcements = plans.flatMap((plan) => plan.announcement ?? []);
  if (announcements.length === 0) return undefined;
  const seconds = announcements.reduce((sum, { seconds }) => sum + seconds, 0);
  return `Set-up: ${announcements.map(({ name }) => name).join(", ")}. Takes ${duration(seconds)} on 2 cores, once.`;
}

/** @param {number} seconds */
function duration(seconds) {
  if (seconds < 90) return `about ${Math.max(Math.ceil(seconds / 10), 1) * 10} seconds`;
  return `about ${Math.round(seconds / 60)} minutes`;
}
