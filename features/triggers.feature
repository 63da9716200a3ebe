Feature: Further checkpoints come from triggers that people choose
  As somebody who pays for every checkpoint with time
  I want to say when checkpoints are taken
  So that I have those that I need and no others

  Scenario Outline: One trigger fires exactly when it should
    Given the triggers "<trigger>"
    And a plan that writes "one.txt", reads it, and fails halfway through "two.txt"
    When the plan is executed
    Then there are 4 groups with the reason "decision"
    And beside those of the decisions there are exactly the groups
      """
      <groups>
      """

    Examples:
      | trigger                | groups                                                                        |
      | before_step            | before step 1: write, before step 2: read, before step 3: fail                |
      | after_step             | after step 1: write, after step 2: read                                       |
      | on_tool_write          | before file.write one.txt, before shell fail                                  |
      | on_tool_write_complete | after file.write one.txt                                                      |
      | on_error               | error in shell fail                                                           |
      | before_apply           | -                                                                             |
      | on_subplan_spawn       | -                                                                             |
      | after_subplan          | -                                                                             |
      | before_tool_execute    | before file.write one.txt, before shell fail                                  |
      | after_tool_execute     | after file.write one.txt                                                      |

  # One scenario for each of the eight: it fires, alone, and going back to its group shows the moment.

  Scenario: before_step fires before the step has done anything
    Given the triggers "before_step"
    And a plan that writes "one.txt" and then "two.txt"
    When the plan is executed
    Then there are 2 groups with the reason "before_step"
    When the plan is rolled back to the last group with the reason "before_step"
    Then the sandbox has "one.txt"
    And the sandbox does not have "two.txt"

  Scenario: after_step fires when the step is done
    Given the triggers "after_step"
    And a plan that writes "one.txt" and then "two.txt"
    When the plan is executed
    Then there are 2 groups with the reason "after_step"
    When the plan is rolled back to the group with the reason "after_step"
    Then the sandbox has "one.txt"
    And the sandbox does not have "two.txt"

  Scenario: on_tool_write fires before a tool that writes
    Given the triggers "on_tool_write"
    And a plan that writes "one.txt" and then "two.txt"
    When the plan is executed
    Then there are 2 groups with the reason "on_tool_write"
    When the plan is rolled back to the group with the reason "on_tool_write"
    Then the sandbox does not have "one.txt"

  Scenario: on_tool_write_complete fires when the tool has written
    Given the triggers "on_tool_write_complete"
    And a plan that writes "one.txt" and then "two.txt"
    When the plan is executed
    Then there are 2 groups with the reason "on_tool_write_complete"
    When the plan is rolled back to the group with the reason "on_tool_write_complete"
    Then the sandbox has "one.txt"
    And the sandbox does not have "two.txt"

  Scenario: on_error fires when execute is about to fail
    Given the triggers "on_error"
    And a plan that writes "one.txt" and then fails halfway through "two.txt"
    When the plan is executed
    Then there is 1 group with the reason "on_error"
    When the plan is rolled back to the group with the reason "on_error"
    Then the sandbox has "one.txt"

  Scenario: on_subplan_spawn fires before the first child starts
    Given the triggers "on_subplan_spawn"
    And a plan whose children write "en.txt" and then "de.txt"
    When the plan is executed
    Then there is 1 group with the reason "on_subplan_spawn"
    When the plan is rolled back to the group with the reason "on_subplan_spawn"
    Then the sandbox does not have "en.txt"
    And the sandbox does not have "de.txt"

  Scenario: after_subplan fires when a child has been merged
    Given the triggers "after_subplan"
    And a plan whose children write "en.txt" and then "de.txt"
    When the plan is executed
    Then there are 2 groups with the reason "after_subplan"
    When the plan is rolled back to the group with the reason "after_subplan"
    Then the sandbox has "en.txt"
    And the sandbox does not have "de.txt"

  Scenario: before_apply fires before the project is changed
    Given the triggers "before_apply"
    And a plan that writes "one.txt" and then "two.txt"
    When the plan is executed
    Then there are 0 groups with the reason "before_apply"
    When the plan is applied
    Then there is 1 group with the reason "before_apply"
    And the project has one more commit with "one.txt" and "two.txt"

  Scenario: An error fires its trigger each time that execute fails, and only then
    Given the triggers "on_error"
    And a plan that writes "one.txt" and then fails halfway through "two.txt"
    When the plan is executed
    And the plan is executed
    Then there are 2 groups with the reason "on_error"

  Scenario: All triggers together
    Given the triggers "before_step,after_step,on_tool_write,on_tool_write_complete,on_error"
    And a plan that writes "one.txt", reads it, and fails halfway through "two.txt"
    When the plan is executed
    Then beside those of the decisions there are exactly the groups
      """
      before step 1: write, before file.write one.txt, after file.write one.txt, after step 1: write,
      before step 2: read, after step 2: read, before step 3: fail, before shell fail, error in shell fail
      """

  Scenario: A trigger that finds nothing changed stores no bytes
    Given the triggers "before_step,after_step"
    And a plan that reads "README.md"
    When the plan is executed
    Then there is 1 group with the reason "before_step"
    And the groups after the first hold no resource

  Scenario: Another name is normalised, and naming a trigger twice is naming it once
    Given the triggers "before_tool_execute, on_tool_write"
    Then the triggers in force are "on_tool_write"

  Scenario Outline: A name that is not known is refused, with all the names that are
    When the triggers "<names>" are chosen
    Then it is refused because "<bad>" is no trigger
    And the message lists every trigger

    Examples:
      | names                   | bad           |
      | on_tool_wirte           | on_tool_wirte |
      | on_error,sometimes      | sometimes     |
      | ON_ERROR                | ON_ERROR      |

  Scenario: A project can choose its own triggers
    Given the project's config chooses the triggers "before_step"
    And a plan that writes "one.txt" and then "two.txt"
    When the plan is executed
    Then there are 2 groups with the reason "before_step"
    And there are 0 groups with the reason "on_tool_write"

  Scenario: The environment has the last word
    Given the project's config chooses the triggers "before_step"
    And the triggers "after_step"
    Then the triggers in force are "after_step"

  Scenario: A project can switch all triggers off, and the groups of decisions stay
    Given the project's config chooses the triggers ""
    And a plan that writes "one.txt" and then "two.txt"
    When the plan is executed
    Then there are 3 groups with the reason "decision"
    And there are 4 groups in all

  Scenario: A plan that switches checkpoints off fires no trigger
    Given the triggers "before_step,after_step,on_tool_write,on_tool_write_complete,on_error"
    And a plan without checkpoints that writes "one.txt"
    When the plan is executed
    Then there are 0 groups in all

  Scenario Outline: A plan that needs checkpoints it cannot have is refused before anything runs
    When a plan with <what> is asked for
    Then it is refused as "action-invalid"
    And the message contains "<reason>"
    And the message contains "require_checkpoints: false"
    And there is no plan

    Examples:
      | what                                  | reason                                                   |
      | a tool that cannot be checkpointed    | deploy writes, but says that its effects cannot be       |
      | a resource that cannot be checkpointed | file.write writes to `code`, of which no checkpoint      |

  Scenario Outline: A plan that does not require checkpoints may run all the same
    Given a plan with <what> that does not require checkpoints
    When the plan is executed
    Then the plan is "complete"

    Examples:
      | what                                   |
      | a tool that cannot be checkpointed     |
      | a resource that cannot be checkpointed |
