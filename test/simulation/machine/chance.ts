/* One random generator for the whole process: the same seed draws the same numbers, in the same order. */

import { createHmac, webcrypto } from 'node:crypto'
import { createRequire, syncBuiltinESMExports } from 'node:module'

const crypto = createRequire(import.meta.url)('node:crypto') as Record<string, unknown>

export interface Chance {
  /** From 0 up to 1. */
  draw(): number
  /** A whole number from 0, below `count`. */
  below(count: number): number
  is(share: number): boolean
  pick<Item>(items: readonly Item[]): Item
}

/** Numbers that follow from a seed: the one called mulberry32. */
export function chanceOf(seed: number): Chance {
  let state = seed | 0
  const draw = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (count: number): number => Math.floor(draw() * count)
  return {
    draw,
    below,
    is: (share) => draw() < share,
    pick<Item>(items: readonly Item[]): Item {
      return items[below(items.length)] as Item
    },
  }
}

/** Two numbers make a third that has nothing to do with either's neighbours. */
export function mixed(one: number, other: number): number {
  const chance = chanceOf(Math.imul(one, 0x9e3779b1) ^ other)
  chance.draw()
  return Math.floor(chance.draw() * 4_294_967_296)
}

let common = chanceOf(0)

/** What programs, and the network between them, draw from. */
export const drawn = (): Chance => common

export function reseed(seed: number): void {
  common = chanceOf(seed)
}

function bytes(count: number): Buffer {
  const made = Buffer.allocUnsafe(count)
  for (let at = 0; at < count; at += 1) made[at] = common.below(256)
  return made
}

function uuid(): string {
  const made = bytes(16)
  made[6] = ((made[6] ?? 0) & 0x0f) | 0x40
  made[8] = ((made[8] ?? 0) & 0x3f) | 0x80
  return made.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

type Bytes = ArrayBuffer | NodeJS.ArrayBufferView

/** WebCrypto as apps use it to verify messages, without the threads that would decide its order. */
const SUBTLE = {
  async importKey(_format: 'raw', key: Bytes): Promise<Buffer> {
    return bufferOf(key)
  },
  async sign(_name: string, key: Buffer, data: Bytes): Promise<ArrayBuffer> {
    return new Uint8Array(createHmac('sha256', key).update(bufferOf(data)).digest()).buffer
  },
  async verify(_name: string, key: Buffer, signature: Bytes, data: Bytes): Promise<boolean> {
    return createHmac('sha256', key).update(bufferOf(data)).digest().equals(bufferOf(signature))
  },
}

function bufferOf(source: Bytes): Buffer {
  return source instanceof ArrayBuffer
    ? Buffer.from(source)
    : Buffer.from(source.buffer, source.byteOffset, source.byteLength)
}

/** Replaces every source of randomness of this process. */
export function replaceChance(): void {
  Math.random = () => common.draw()
  crypto.randomBytes = bytes
  crypto.randomUUID = uuid
  const given = {
    randomUUID: uuid,
    getRandomValues<View extends NodeJS.TypedArray>(view: View): View {
      bytes(view.byteLength).copy(new Uint8Array(view.buffer, view.byteOffset, view.byteLength))
      return view
    },
    subtle: SUBTLE,
  }
  for (const [name, value] of Object.entries(given)) {
    Object.defineProperty(webcrypto, name, { value, configurable: true, writable: true })
  }
  syncBuiltinESMExports()
}
