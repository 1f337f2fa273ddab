import type { CustomerQuestions } from '../handlers/customer-questions.js'
import type { CustomerReaders } from '../store/customer-readers.js'
import type { Guard } from './guards.js'

/** What is asked of the store about customers, each answer guarded. */
export function customerQuestions(readers: CustomerReaders, answered: Guard): CustomerQuestions {
  return {
    readAccesses: answered(readers.readAccesses),
    findByReference: answered(readers.findByReference),
    findByReferences: answered(readers.findByReferences),
    findByDetail: answered(readers.findByDetail),
    readCustomer: answered(readers.readCustomer),
    readProductCustomers: answered(readers.readProductCustomers),
    readChangePage: answered(readers.readChangePage),
  }
}
