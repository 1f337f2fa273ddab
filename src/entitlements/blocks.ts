import type { ManualEvent } from '../provider/event.js'
import { compareByTime } from './order.js'
import type { Instant } from './source-view.js'

/** A block on one product, or on every one (`productId` null), from `from` (inclusive) until `until` (exclusive). */
export interface Block {
  readonly productId: string | null
  readonly from: number
  /** Null: it stands. */
  readonly until: number | null
}

/**
 * Folds one customer's block events into every block that ever stood: a pure function of their set. A block that
 * stands already stays; lifting the block on every product lifts those on single ones along.
 */
export function foldBlocks(events: readonly ManualEvent[]): readonly Block[] {
  let blocks: readonly Block[] = []
  for (const { type, productId, createdAt: at } of [...events].sort(compareByTime)) {
    const stands = (block: Block): boolean => isStanding(block) && block.productId === productId
    if (type === 'manual.blocked' && !blocks.some(stands)) {
      blocks = [...blocks, { productId, from: at, until: null }]
    }
    if (type === 'manual.unblocked') {
      const isLifted = (block: Block): boolean => isStanding(block) && (productId === null || stands(block))
      blocks = blocks.map((block) => (isLifted(block) ? { ...block, until: at } : block))
    }
  }
  return blocks
}

/**
 * The blocks on one product as they stood at the instant asked about: begun by then, and lifted by then or standing.
 * Asked about now, that is never before the newest act.
 */
export function blocksOn(
  productId: string | null,
  blocks: readonly Block[],
  instant: Instant,
): readonly Block[] {
  const newestAt = Math.max(...blocks.map(({ from, until }) => until ?? from))
  const at = 'at' in instant ? instant.at : Math.max(instant.now, newestAt)
  return blocks
    .filter((block) => block.from <= at && (block.productId === null || block.productId === productId))
    .map((block) => (block.until !== null && block.until > at ? { ...block, until: null } : block))
}

export function isStanding({ until }: Block): boolean {
  return until === null
}
