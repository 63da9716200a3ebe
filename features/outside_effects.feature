Feature: What a step does outside its sandbox happens once, or somebody was asked
  As somebody whose plans send mails and book seats
  I want nothing outside to happen twice by accident
  So that going back and going on are safe

  Scenario: A rollback lists what it cannot take back, and going on asks first
    Given a plan that sends a mail
    And the plan is executed
    When the plan is rolled back to "start"
    Then it tells "cannot be undone: step 1 (mail): a mail"
    When the plan is asked to go on
    Then it stops with "effect-already-done"
    And 1 mail was sent
    And the plan is "queued"

  Scenario Outline: The answer is obeyed
    Given a plan that sends a mail
    And the plan is executed
    And the plan is rolled back to "start"
    When the plan goes on with the answer "<answer>"
    Then the plan is "complete"
    And <count> mails were sent
    And the ledger says "<ledger>"

    Examples:
      | answer | count | ledger        |
      | repeat | 2     | done, done    |
      | skip   | 1     | done, skipped |

  Scenario: A step that failed may have had its effect
    Given a plan that sends a mail and then fails
    When the plan is executed
    Then the plan is "errored"
    And the ledger says "uncertain"
    When the plan is asked to go on
    Then it stops with "effect-uncertain"
    And 1 mail was sent

  Scenario: An idempotent tool is run again without asking
    Given a plan that sends a mail with an idempotent tool
    And the plan is executed
    And the plan is rolled back to "start"
    When the plan is executed
    Then the plan is "complete"
    And 2 mails were sent

  Scenario: A compensating tool takes an effect back
    Given a plan that sends a mail which can be recalled
    And the plan is executed
    When the plan is rolled back to "start"
    Then it tells "compensated: step 1 (mail): a mail"
    And 1 mail was recalled
    And the ledger says "compensated"
    When the plan is executed
    Then 2 mails were sent

  Scenario: Undoing a rollback does no effect again
    Given a plan that sends a mail which can be recalled
    And the plan is executed
    And the plan is rolled back to "start"
    When the rollback is undone
    Then it tells "compensated earlier, and not done again: step 1 (mail): a mail"
    And 1 mail was sent

  Scenario: A compensation that fails is told, and the rollback goes on
    Given a plan that sends a mail whose recall fails
    And the plan is executed
    When the plan is rolled back to "start"
    Then it tells "may have happened: step 1 (mail): a mail: its compensation recall failed"
    And the plan is "queued"
    And the ledger says "uncertain"

  Scenario: A failed step is tried again where that repeats nothing outside
    Given a plan with 2 new tries whose step works the third time
    When the plan is executed
    Then the plan is "complete"
    And there are 0 groups with the reason "on_error"

  Scenario: When no try is left, there is one group of the error
    Given a plan with 1 new try whose step works the third time
    When the plan is executed
    Then the plan is "errored"
    And there is 1 group with the reason "on_error"

  Scenario: A mail is never tried again by itself
    Given a plan with 5 new tries that sends a mail and then fails
    When the plan is executed
    Then the plan is "errored"
    And 1 mail was sent
