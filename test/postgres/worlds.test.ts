import { expect, it } from 'vitest'
import { playOnPostgres, told } from '../simulation/on-postgres.js'
import { realStoryOf } from '../simulation/story.js'

/**
 * By hand, for as long as one likes, and the same story once more:
 * `WORLD_SECONDS=300 WORLD_SEED=7 npx vitest run --project postgres test/postgres/worlds.test.ts`.
 */
const SECONDS = Number(process.env.WORLD_SECONDS ?? 6)
const SEED = Number(process.env.WORLD_SEED ?? 7)

it(
  'keeps every promise in a world of two daemons that are killed, stopped and cut off',
  async () => {
    process.stdout.write(`WORLD_SEED=${SEED}\n`)
    const story = realStoryOf(SEED, SECONDS, null)
    const { failure } = await playOnPostgres(SEED, SECONDS, story)
    expect(failure === null ? [] : told(SEED, story, failure)).toEqual([])
  },
  SECONDS * 1_000 + 600_000,
)
