import { fingerprintOf, type KnownFingerprints, type PersonWord } from './fingerprints.js'
import { mentions } from './mentions.js'
import { numbersIn } from './numbers.js'
import { asContact, mayHoldPersonWords, personWordsIn } from './person-words.js'
import { readingsOf } from './readings.js'

/** Those who are erased, as far as a body can tell of them. */
export interface ErasedPeople {
  readonly isErased: (customerId: string) => boolean
  /** Whether a text has any of their ids in it. */
  readonly mentionsId: (text: string) => boolean
  /**
   * By which words a text tells of them, in lower case.
   * @param isPersonField whether the text stands where a person is told of: then any word may be one
   */
  readonly mentionsIn: (text: string, isPersonField: boolean) => readonly PersonWord[]
}

/** What is known of them: the words themselves only while what is stored is looked through. */
export interface ErasedKnowledge {
  readonly ids: ReadonlySet<string>
  readonly words: readonly PersonWord[]
  readonly fingerprints: readonly KnownFingerprints[]
}

const NONE: readonly PersonWord[] = []

/** To be made anew before long: it remembers what it was asked. */
export function createErasedPeople({ ids, words, fingerprints }: ErasedKnowledge): ErasedPeople {
  /** Asked for seldom: most bodies name somebody. */
  let mentionsId: ((text: string) => boolean) | null = null

  /** Many deliveries say the same, such as the name of a product. */
  const asked = new Map<string, boolean>()

  function isFingerprinted(word: PersonWord): boolean {
    const key = `${word.kind} ${word.word}`
    const isKnown = asked.get(key) ?? fingerprints.some((one) => one.known.has(fingerprintOf(one.key, word)))
    asked.set(key, isKnown)
    return isKnown
  }

  return {
    isErased: (customerId) => ids.has(customerId),
    mentionsId(text) {
      mentionsId ??= createMentionsId(ids)
      return readingsOf(text).some(mentionsId)
    },
    mentionsIn(text, isPersonField) {
      if (words.length === 0 && (fingerprints.length === 0 || !mayHoldPersonWords(text, isPersonField))) {
        return NONE
      }
      return readingsOf(text).flatMap((reading) => [
        ...(words.length === 0 ? NONE : wordsToldBy(reading, words)),
        ...(fingerprints.length === 0 ? NONE : personWordsIn(reading, isPersonField).filter(isFingerprinted)),
      ])
    },
  }
}

/**
 * Which of the words a text tells. A name that could be any word counts where nothing else stands: `Grace` is not in
 * `grace period`. A number counts wherever its digits begin and end.
 */
function wordsToldBy(text: string, words: readonly PersonWord[]): readonly PersonWord[] {
  const lower = text.trim().toLowerCase()
  const contact = asContact(text).word
  const numbers = new Set(numbersIn(text))
  return words.filter(({ kind, word }) => {
    if ((kind === 'contact' && word === contact) || numbers.has(word)) return true
    // All that is stored is looked through: most texts have no word of anybody's in them.
    if (!lower.includes(word)) return false
    return kind === 'name' && IS_ANY_WORD.test(word) ? lower === word : mentions(lower, [word])
  })
}

const IS_ANY_WORD = /^\p{L}+$/u
const IS_PLAIN_ID = /^[\p{L}\p{N}_-]+$/u
const PLAIN_IDS = /(?<![\p{L}\p{N}_.+-])[\p{L}\p{N}_-]+/gu

/** Looks plain ids up, for many may be erased: what is between two boundaries is an id or is not. */
function createMentionsId(ids: ReadonlySet<string>): (text: string) => boolean {
  const all = [...ids].map((id) => id.toLowerCase())
  const plain = new Set(all.filter((id) => IS_PLAIN_ID.test(id)))
  const odd = all.filter((id) => !IS_PLAIN_ID.test(id))
  return (text) => {
    for (const [id] of text.toLowerCase().matchAll(PLAIN_IDS)) if (plain.has(id)) return true
    return mentions(text, odd)
  }
}
