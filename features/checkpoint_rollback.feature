Feature: Every decision is a checkpoint, and a plan can go back to any of them
  As somebody who lets agents change real things
  I want to go back to the moment before any decision
  So that nothing an agent does is final before I say so

  Scenario: Every decision makes a checkpoint group by itself
    Given a plan that writes "one.txt" and then "two.txt"
    When the plan is executed
    Then there are 3 groups with the reason "decision"
    And each decision of the plan has a group of its own
    And the plan stands on the newest group

  Scenario: The default triggers surround every call of a tool that writes
    Given a plan that writes "one.txt" and then "two.txt"
    When the plan is executed
    Then there are 2 groups with the reason "on_tool_write"
    And there are 2 groups with the reason "on_tool_write_complete"
    And there are 0 groups with the reason "on_error"

  Scenario: A tool that only reads fires no trigger
    Given a plan that reads "README.md"
    When the plan is executed
    Then there are 2 groups with the reason "decision"
    And there are 3 groups in all

  Scenario: A failing step leaves one group with what it left behind
    Given a plan that writes "one.txt" and then fails halfway through "two.txt"
    When the plan is executed
    Then the plan is "errored"
    And there is 1 group with the reason "on_error"
    When the plan is rolled back to the group with the reason "on_error"
    Then the sandbox has "two.txt"

  Scenario: The empty list of triggers leaves the groups of the decisions
    Given the triggers ""
    And a plan that writes "one.txt" and then "two.txt"
    When the plan is executed
    Then there are 4 groups in all
    When the plan is rolled back to "decision 2: write two.txt"
    Then the sandbox has "one.txt"
    And the sandbox does not have "two.txt"

  Scenario: Triggers can be chosen, also by their other names
    Given the triggers "before_step, after_tool_execute"
    And a plan that writes "one.txt" and then "two.txt"
    When the plan is executed
    Then there are 2 groups with the reason "before_step"
    And there are 2 groups with the reason "on_tool_write_complete"
    And there are 0 groups with the reason "on_tool_write"

  Scenario: A rollback restores files, removes later ones and discards later decisions
    Given a plan that writes "one.txt" and then "two.txt"
    And the plan is executed
    When the plan is rolled back to "start"
    Then the sandbox is as it was at the start
    And 2 decisions and 2 tool calls were discarded
    And the plan is "queued"
    And the plan stands on the group "start"

  Scenario: A rollback can itself be undone
    Given a plan that writes "one.txt" and then "two.txt"
    And the plan is executed
    And the plan is rolled back to "start"
    When the rollback is undone
    Then the sandbox has "one.txt"
    And the sandbox has "two.txt"
    And no decision is superseded

  Scenario: A plan that was rolled back can be resumed to the same result
    Given a plan that writes "one.txt" and then "two.txt"
    And the plan is executed
    And the plan is rolled back to "after file.write one.txt"
    When the plan is executed
    Then the plan is "complete"
    And the sandbox has "two.txt"

  Scenario: The user's project is never touched before apply
    Given a plan that writes "one.txt" and then "two.txt"
    When the plan is executed
    And the plan is rolled back to "start"
    And the plan is executed
    Then the user's project is as it was
    When the plan is applied
    Then the project has one more commit with "one.txt" and "two.txt"

  Scenario Outline: A rollback that cannot be right is refused and changes nothing
    Given a plan that writes "one.txt" and then "two.txt"
    And the plan is executed
    When <something happens>
    And the plan is asked to go back to "<checkpoint>"
    Then it is refused as "<code>"
    And the message says what to do

    Examples:
      | something happens                | checkpoint | code                       |
      | nothing happens                  | no such    | checkpoint-not-found       |
      | nothing happens                  | 01M        | checkpoint-not-found       |
      | the sandbox is deleted           | start      | sandbox-missing            |
      | the sandbox becomes a link       | start      | sandbox-missing            |
      | the plan is cancelled            | start      | plan-cancelled             |
      | another plan has a checkpoint    | its head   | checkpoint-of-another-plan |
      | the plan is at its start, and the stored "one.txt" is damaged | after file.write one.txt | snapshot-damaged |
      | somebody else holds the lock     | start      | plan-locked                |
      | the group "decision 2: write two.txt" is deleted | decision 2: write two.txt | checkpoint-not-found |

  Scenario: A plan that is applied cannot be rolled back
    Given a plan that writes "one.txt" and then "two.txt"
    And the plan is executed
    And the plan is applied
    When the plan is asked to go back to "start"
    Then it is refused as "plan-applied"
    And the message says what to do

  Scenario: The oldest groups go, but never the first, the newest or one labelled by hand
    Given at most 5 groups per plan
    And a plan that writes 6 files and waits after the first
    And the plan is executed
    And a checkpoint is made by hand with the label "mine"
    When the wait is over and the plan is executed
    Then there are at most 5 states beside the newest
    And there is a group labelled "start"
    And there is a group labelled "mine"
    And the plan stands on the newest group

  Scenario: What a rollback would do can be seen before
    Given a plan that writes "one.txt" and then "two.txt"
    And the plan is executed
    When somebody asks what going back to "start" would do
    Then "one.txt" and "two.txt" would be removed
    And nothing has changed

  Scenario: A single file can be brought back without taking the plan back
    Given a plan that writes "one.txt" and then "two.txt"
    And the plan is executed
    When "two.txt" alone is brought back from "start"
    Then the sandbox has "one.txt"
    And the sandbox does not have "two.txt"
    And the plan is "complete"
    And no decision is superseded
    When the rollback is undone
    Then the sandbox has "two.txt"

  Scenario: A label is given once
    Given a plan that writes "one.txt" and then "two.txt"
    And the plan is executed
    And a checkpoint is made by hand with the label "mine"
    When another checkpoint is to be made with the label "mine"
    Then it is refused as "label-taken"
    And the message says what to do

  Scenario: Pruning says why each group stays or goes
    Given a plan that writes "one.txt" and then "two.txt"
    And the plan is executed
    And a checkpoint is made by hand with the label "mine"
    And at most 2 groups per plan
    When somebody asks what pruning would do
    Then "start" would stay because it is "the first"
    And "mine" would stay because it is "the plan stands on it"
    And nothing has changed

  Scenario: Groups that are too old go
    Given a plan that writes "one.txt" and then "two.txt"
    And the plan is executed
    And groups may be 30 days old
    When 40 days have passed
    And the plan is pruned
    Then there are 2 groups in all
    And there is a group labelled "start"
    And the plan stands on the newest group

  Scenario: The clock going back prunes nothing
    Given a plan that writes "one.txt" and then "two.txt"
    And the plan is executed
    And groups may be 30 days old
    When the clock is put back by 40 days
    And the plan is pruned
    Then there are 7 groups in all

  Scenario: A policy can switch checkpoints off
    Given a plan without checkpoints that writes "one.txt"
    When the plan is executed
    Then the plan is "complete"
    And there are 0 groups in all

  Scenario: Without checkpoints a failed step is undone, and no group is made behind one's back
    Given a plan without checkpoints that fails halfway through "one.txt" until it may go on
    And the plan is executed
    When the wait is over and the plan is executed
    Then the plan is "complete"
    And there are 0 groups in all
