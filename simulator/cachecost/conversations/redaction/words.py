"""Words that are no names of persons, even where a name is expected. Lower case."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PARTICLES = _words("al ap bin da das de del della der di do dos du el la le ten ter van von y zu zum zur")
"""Small words within a person's name."""

SYSTEM = _words(
    """
    admin administrator agent all android app apps azureuser bar baz bitnami build builder builduser centos circleci
    claude coder codespace codespaces container containeruser daemon debian default defaultuser0 deploy deployer dev
    developer devuser docker ec2-user example fedora foo ftp git gitlab gitlab-runner gitpod guest hadoop jenkins
    jovyan kali linuxbrew me model mongodb myname mysql myuser name nginx nixbld nobody node nonroot nvidia opc
    oracle pi pipeline postgres public python rails redis root ruby runner runneradmin sandbox scrapy self service
    share shared somebody somename someone something somewhere student super sysadmin test tester testuser theia
    travis ubuntu user user-name user1 user2 user_name username users vagrant vcap vscode webapp whoever worker
    workspace www www-data you your your-name your-user your-username your_name your_user your_username yourname
    yourself yourusername
    """
)
"""Users that systems, images and manuals have."""

ORDINARY = SYSTEM | _words(
    """
    about above access account accounts action actions active activity add address after alert alerts alias alpha
    also always amazon and announce answer anthropic any api apple application april archive area article assets
    assistant async audio audit august auth author authors auto aws azure back backend backup base bash basic batch
    beta bill billing block blog board body book booking bot bots box branch brew bug bugs business busy button
    cache calendar call campaign card care career careers case center chain change channel chart chase chat check
    chef child chrome class client clients cloud code codex collection column come command comment commit common
    community company component components compute config console contact contacts content context contrib control
    cookie copilot copy core count course create cron cursor custom customer customers dash dashboard data database
    date day debug december deep demo deployment design desk desktop detail details device dict digest direct
    directory discuss docs document documents done download downloads draft drive driver drop early earth east echo
    edge edit editor education element email empty end energy engine english enquiries enter entry environment error
    errors event events every examples experiment export faith false fast feature february feed feedback field file
    files final finance find fine first flag flash float flow folder follow font form format forms forum forward
    found free friend from front frontend full func function gateway gemini general generic github global gmail
    google grace grant graph green grid group groups guard guide handler hash have head header health hello help
    helper here hidden high history home hooks hope host hosting hour house human idea image images import inbox
    index industry info information inquiries inside install int integration internal internet into invoice ios
    issue issues item items january java job jobs join json july june just keep kernel key kind lake land language
    last late layout lead learn legal less level library license light like limit line link linux list lists little
    live load local location lock log logger login logo logs long look loop mac machine mail mailer main maintainer
    maintainers make manage management manager manual many map march mark market marketing master match max may
    media member members memory menu merge message messages meta method microsoft middle miles min mobile mode
    models module monitor month more most movie music must native network never new news newsletter next nice night
    none normal north note notes notice notification notifications notify november null number object october office
    official only open openai operations option options order orders origin other output owner package packages page
    pages parent park part partner partners party past patch path pay payment payments peace people personal phone
    photo pick place plain plan platform play player please plugin point policy port post postmaster power premier
    press preview prime print privacy private process product production profile program project projects promise
    prompt proxy pull purchase push query question questions queue quick rate react read reader ready real reception
    record recording records recruiting red reference register registry release releases remote repo report reports
    repository request research reset resource response rest result results return review reviewer reviews rich
    right river road robot robots room rose route router rule run rust safe sales sample save scene schedule school
    science scope score screen script search second secret section secure security see select send senior september
    series server servers services session set settings setup shell shop short should show side sign signed simple
    single site size sky small smart snow social software some source space special spring square stack staff stage
    staging standard start state static station status step still stone stop storage store story stream street
    string strings strong studio style submit subscribe subscription success such summary summer sunday support sure
    survey sync system systems table tag take target task tasks team teams tech technical template terminal testing
    tests text than that the them theme then there they thing think this thread ticket tickets time title todo token
    tool tools top topic total town track training transfer travel tree true trust type under unit universal unknown
    update updates upload use utils value vendor version very video view virtual visa vision voice wait ward watch
    water weather web webmaster website week welcome well west what when where which white will win window windows
    winter with word work workflow world write writer year yellow young zero zone
    """
)
"""Words that stand in texts far more often than as a name, some of them first names, and mailboxes of a role."""
